-- Leaves tombstones of jobs. $1 jobs, $2 now.
insert into leasehold.tombstones (
  job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
)
select j.id, r.scope, r.key, j.queue, r.subject, r.subject_version, r.hash, j.state,
  j.claim_version, j.claim_id, j.last_verdict, $2
from leasehold.jobs j
  cross join lateral (
    select scope, key, subject, subject_version, hash
    from leasehold.requests
    where job_id = j.id
    limit 1
  ) r
where j.id = any($1)
