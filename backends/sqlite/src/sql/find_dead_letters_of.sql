-- A page of a queue's dead letters by job and version. Parameters as in find_dead_letters.sql; ?3 is
-- never null.
-- Differs: PostgreSQL's planner sees that by itself.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at,
  first_failure_at
from leasehold_dead_letters
where queue = ?3 and (job_id, claim_version) > (?1, ?2)
order by job_id, claim_version
limit ?4
