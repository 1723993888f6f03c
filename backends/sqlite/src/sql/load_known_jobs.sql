-- What exists under the ids of jobs, pruned jobs included. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select j.id, r.hash, j.state
from list
  cross join leasehold_jobs j on j.id = substr(?1, at + 1, 16)
  join leasehold_requests r on r.job_id = j.id
union all
select job_id, hash, outcome
from list
  cross join leasehold_tombstones on job_id = substr(?1, at + 1, 16)
