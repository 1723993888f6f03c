-- Job rows. ?1 jobs, id after id in one blob.
-- Differs: the transaction holds the one write lock, so no row is locked.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, partition
from list
  cross join leasehold_jobs on id = substr(?1, at + 1, 16)
