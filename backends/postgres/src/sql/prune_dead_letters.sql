-- Lets go of pruned jobs' dead_letters. $1 jobs.
delete from leasehold.dead_letters
where job_id = any($1)
