-- What exists under the ids of jobs, pruned jobs included. $1 jobs.
select id, hash, state
from leasehold.jobs
where id = any($1)
union all
select job_id, hash, outcome
from leasehold.tombstones
where job_id = any($1)
