-- What exists under the ids of jobs, pruned jobs included. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select id, hash, state
from list
  cross join leasehold_jobs on id = substr(?1, at + 1, 16)
union all
select job_id, hash, outcome
from list
  cross join leasehold_tombstones on job_id = substr(?1, at + 1, 16)
