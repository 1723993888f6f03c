-- What exists under the ids of jobs, pruned jobs included. $1 jobs.
select j.id, r.hash, j.state
from leasehold.jobs j
  cross join lateral (
    select hash
    from leasehold.requests
    where job_id = j.id
    limit 1
  ) r
where j.id = any($1)
union all
select job_id, hash, outcome
from leasehold.tombstones
where job_id = any($1)
