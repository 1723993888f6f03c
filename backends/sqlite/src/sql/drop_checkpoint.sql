-- Drops a job's checkpoint. ?1 job.
update leasehold_outcomes
set checkpoint = null
where job_id = ?1
