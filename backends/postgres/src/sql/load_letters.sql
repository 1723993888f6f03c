-- A job's dead letters, locked. $1 job.
-- Differs: SQLite's transaction holds the one write lock, so no row is locked.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note
from leasehold.dead_letters
where job_id = $1
order by claim_version
for no key update
