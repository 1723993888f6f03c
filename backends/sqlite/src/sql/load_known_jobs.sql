-- What exists under a job's id, pruned jobs included. ?1 job.
select r.hash, j.state
from leasehold_jobs j
  join leasehold_requests r on r.job_id = j.id
where j.id = ?1
union all
select hash, outcome
from leasehold_tombstones
where job_id = ?1
limit 1
