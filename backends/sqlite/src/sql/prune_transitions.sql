-- Lets go of a pruned job's transitions. ?1 job.
delete from leasehold_transitions
where job_id = ?1
