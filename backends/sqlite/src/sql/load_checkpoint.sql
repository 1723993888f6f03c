-- What earlier executions left for the next ones. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select job_id, checkpoint
from list
  cross join leasehold_outcomes on job_id = substr(?1, at + 1, 16)
where checkpoint is not null
