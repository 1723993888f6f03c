-- Writes back what can change of waits, which nobody else does while their jobs are locked.
-- $1 jobs, $2 parents, $3 open, $4 outcomes.
with rows as materialized (
  select w.ctid as at, v.open, v.outcome
  from unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::text[]) as v (job_id, parent_id, open, outcome)
    cross join lateral (
      select ctid
      from leasehold.waits
      where job_id = v.job_id and parent_id = v.parent_id
      -- Keeps one walk of the index for each wait.
      offset 0
    ) w
)
update leasehold.waits
set open = rows.open, outcome = rows.outcome
from rows
where waits.ctid = rows.at and waits.ctid = any(array(select at from rows))
