-- The dead letters that jobs replay, locked. $1 jobs, in order.
-- Differs: SQLite's transaction holds the one write lock, so no row is locked.
select letter.*
from unnest($1::uuid[]) as wanted (id)
  cross join lateral (
    select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
      replay_job, changed_at, changed_by, note
    from leasehold.dead_letters
    where replay_job = wanted.id and state = 'replaying'
    offset 0
    for no key update
  ) letter
