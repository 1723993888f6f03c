-- What earlier executions left for the next ones. $1 jobs.
select job_id, checkpoint
from leasehold.outcomes
where job_id = any($1) and checkpoint is not null
