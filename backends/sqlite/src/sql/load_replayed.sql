-- The dead letters that jobs replay. ?1 jobs, id after id in one blob.
-- Differs: the transaction holds the one write lock, so no row is locked.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note
from list
  cross join leasehold_dead_letters on replay_job = substr(?1, at + 1, 16) and state = 'replaying'
