-- Leased rows of all queues whose lease has run out, in id order, locked where they are free.
-- $1 now, $2 limit. The order is that of ids; as text it keeps every plan off the index of all ids.
select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, partition
from leasehold.jobs
where state = 'leased' and lease_expires_at <= $1
order by (id::text) collate "C"
limit $2
for no key update skip locked
