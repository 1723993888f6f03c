-- Lets go of pruned jobs' jobs. $1 jobs.
delete from leasehold.jobs
where id = any($1)
