-- Leased rows of a queue whose lease has run out, in id order, locked where they are free.
-- $1 queue, $2 now, $3 limit.
select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, partition
from leasehold.jobs
where state = 'leased' and queue = $1 and lease_expires_at <= $2
order by id
limit $3
for no key update skip locked
