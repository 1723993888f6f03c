-- The open waits for some jobs. $1 jobs.
select w.job_id, w.parent_id, w.on_failure, w.open, w.outcome
from unnest($1::uuid[]) as p (id)
  cross join lateral (
    select *
    from leasehold.waits
    where parent_id = p.id and open
    -- Keeps one walk of the index for each job.
    offset 0
  ) w
