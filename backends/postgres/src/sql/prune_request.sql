-- Lets go of pruned jobs' requests. $1 jobs.
delete from leasehold.requests
where job_id = any($1)
