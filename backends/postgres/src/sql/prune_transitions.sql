-- Lets go of pruned jobs' transitions. $1 jobs.
delete from leasehold.transitions
where job_id = any($1)
