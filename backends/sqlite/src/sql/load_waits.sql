-- The open waits for some jobs. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 and exists (select 1 from leasehold_waits)
  union all
  select at + 16 from list where at + 16 < length(?1)
)
select job_id, parent_id, on_failure, open, outcome
from list
  cross join leasehold_waits on parent_id = substr(?1, at + 1, 16)
where open = 1
