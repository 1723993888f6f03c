-- Job rows, locked in id order; each with the time after its lock and the epoch.
-- $1 jobs, $2 the time in tests, else null.
-- Differs: SQLite's transaction holds the one write lock, so no row is locked.
with locked as materialized (
  select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
    attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
    lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
    created_at, updated_at, started_at, finished_at, partition
  from leasehold.jobs
  where id = any($1)
  order by id
  for no key update
)
select locked.*, coalesce($2, clock_timestamp()), s.epoch::bigint
from locked
  cross join leasehold.store s
