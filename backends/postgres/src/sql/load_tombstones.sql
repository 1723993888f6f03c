-- What is left of pruned jobs. $1 jobs.
select job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
from leasehold.tombstones
where job_id = any($1)
