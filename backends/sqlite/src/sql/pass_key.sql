-- Passes a key to another job where a job holds it; when it lapses stays. ?1 scope, ?2 key, ?3 the job
-- that gets it, ?4 the one that held it.
update leasehold_keys
set job_id = ?3
where scope = ?1 and key = ?2 and job_id = ?4
