-- Lets go of pruned jobs' outcomes. $1 jobs.
delete from leasehold.outcomes
where job_id = any($1)
