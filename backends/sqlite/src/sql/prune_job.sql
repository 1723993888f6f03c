-- Lets go of a pruned job's jobs. ?1 job.
delete from leasehold_jobs
where id = ?1
