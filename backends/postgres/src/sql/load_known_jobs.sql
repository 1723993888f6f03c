-- What exists under the ids of jobs, pruned jobs included. $1 jobs, in order. Fresh ids lie beyond all
-- others, so that a look at the next id there is tells that there is nothing.
select id, hash, state
from leasehold.jobs
where id = any($1) and $1[cardinality($1)] >= (
    select id from leasehold.jobs where id >= $1[1] order by id limit 1
  )
union all
select job_id, hash, outcome
from leasehold.tombstones
where job_id = any($1) and $1[cardinality($1)] >= (
    select job_id from leasehold.tombstones where job_id >= $1[1] order by job_id limit 1
  )
