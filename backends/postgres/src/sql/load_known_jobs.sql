-- What exists under the ids of jobs, pruned jobs included. $1 jobs, in order. Fresh ids lie beyond all
-- others, so that one look at their range tells that there is nothing.
select id, hash, state
from leasehold.jobs
where id = any($1) and (
    select exists (
      select 1 from leasehold.jobs where id >= $1[1] and id <= $1[cardinality($1)]
    )
  )
union all
select job_id, hash, outcome
from leasehold.tombstones
where job_id = any($1) and (
    select exists (
      select 1 from leasehold.tombstones where job_id >= $1[1] and job_id <= $1[cardinality($1)]
    )
  )
