-- A page of a queue's dead letters by job and version. Parameters as in find_dead_letters.sql; ?3 is
-- never null.
-- Differs: PostgreSQL's planner sees that by itself.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note, first_failure_at
from leasehold_dead_letters
where queue = ?3 and (job_id, claim_version) > (?1, ?2) and job_id <= ?8
  and (?5 is null or kind = ?5) and (?6 is null or state = ?6) and (?7 is null or error_class = ?7)
order by job_id, claim_version
limit ?4
