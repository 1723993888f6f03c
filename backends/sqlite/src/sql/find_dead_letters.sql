-- A page of dead letters by job and version. ?1 and ?2 the letter to begin after, ?3 queue or null
-- for all, ?4 limit, ?5 kind, ?6 state, ?7 error class, each null for all, ?8 the last job.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note, first_failure_at
from leasehold_dead_letters
where (job_id, claim_version) > (?1, ?2) and job_id <= ?8 and (?3 is null or queue = ?3)
  and (?5 is null or kind = ?5) and (?6 is null or state = ?6) and (?7 is null or error_class = ?7)
order by job_id, claim_version
limit ?4
