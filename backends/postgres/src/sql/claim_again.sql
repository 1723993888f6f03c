-- What an earlier send of the same claim request took from a queue and still holds.
-- $1 queue, $2 claim, $3 worker, $4 now, $5 limit.
select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, partition, payload, subject, subject_version,
  traceparent
from leasehold.jobs
where state = 'leased' and queue = $1 and claim_id = $2 and worker_id = $3 and lease_expires_at > $4
order by priority desc, run_at, id
limit $5
for no key update
