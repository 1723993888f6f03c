-- Leaves a tombstone of a job. ?1 job, ?2 now.
insert into leasehold_tombstones (
  job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
)
select id, scope, key, queue, subject, subject_version, hash, state, claim_version, claim_id,
  last_verdict, ?2
from leasehold_jobs
where id = ?1
