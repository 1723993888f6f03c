-- Lets go of a pruned job's payloads. ?1 job.
delete from leasehold_payloads
where job_id = ?1
