-- Leaves tombstones of jobs. $1 jobs, $2 now.
insert into leasehold.tombstones (
  job_id, scope, key, queue, subject, subject_version, hash, outcome, claim_version, claim_id,
  last_verdict, pruned_at
)
select id, scope, key, queue, subject, subject_version, hash, state, claim_version, claim_id,
  last_verdict, $2
from leasehold.jobs
where id = any($1)
