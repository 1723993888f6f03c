-- Which of some jobs have open waits for others than some; read from the end, where the waits are that
-- were met last, if any. $1 jobs, $2 the others.
select c.id
from unnest($1::uuid[]) as c (id)
  cross join lateral (
    select w.job_id
    from leasehold.waits w
    where w.job_id = c.id and w.open and w.parent_id <> all($2)
    order by w.parent_id desc
    limit 1
  ) other
