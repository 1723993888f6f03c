-- Lets go of a pruned job's dead_letters. ?1 job.
delete from leasehold_dead_letters
where job_id = ?1
