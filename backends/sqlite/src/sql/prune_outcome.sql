-- Lets go of a pruned job's outcomes. ?1 job.
delete from leasehold_outcomes
where job_id = ?1
