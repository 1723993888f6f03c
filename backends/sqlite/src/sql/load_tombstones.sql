-- What is left of a pruned job. ?1 job.
select job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
from leasehold_tombstones
where job_id = ?1
