-- Lets go of a pruned job's requests. ?1 job.
delete from leasehold_requests
where job_id = ?1
