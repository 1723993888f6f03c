-- Drops jobs' checkpoints. $1 jobs.
update leasehold.outcomes
set checkpoint = null
where job_id = any($1)
