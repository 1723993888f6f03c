-- The dead letters that jobs replay, locked. $1 jobs.
-- Differs: SQLite's transaction holds the one write lock, so no row is locked.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note
from leasehold.dead_letters
where replay_job = any($1) and state = 'replaying'
order by job_id, claim_version
for no key update
