-- A page of dead letters by job and version. $1 and $2 the letter to begin after, $3 queue or null
-- for all, $4 limit.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at,
  first_failure_at
from leasehold.dead_letters
where (job_id, claim_version) > ($1, $2) and ($3::text is null or queue = $3)
order by job_id, claim_version
limit $4
