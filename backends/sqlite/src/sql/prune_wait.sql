-- Lets go of a pruned job's waits. ?1 job.
delete from leasehold_waits
where job_id = ?1
