-- Leaves a tombstone of a job. ?1 job, ?2 now.
insert into leasehold_tombstones (
  job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
)
select j.id, r.scope, r.key, j.queue, r.subject, r.subject_version, r.hash, j.state,
  j.claim_version, j.claim_id, j.last_verdict, ?2
from leasehold_jobs j
  join leasehold_requests r on r.job_id = j.id
where j.id = ?1
