-- Keeps dead letters; when a job first failed stands in its outcome. $1 jobs, $2 versions, $3 queues,
-- $4 kinds, $5 stages, $6 error classes, $7 failures, $8 attempts, $9 last failures, $10 states.
insert into leasehold.dead_letters (
  job_id, claim_version, queue, kind, stage, error_class, failure, attempts, first_failure_at,
  last_failure_at, state
)
select v.job_id, v.claim_version, v.queue, v.kind, v.stage, v.error_class, v.failure, v.attempts,
  coalesce(o.first_failure_at, v.failed_at), v.failed_at, v.state
from unnest(
  $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
  $8::bigint[], $9::timestamptz[], $10::text[]
) as v (job_id, claim_version, queue, kind, stage, error_class, failure, attempts, failed_at, state)
  left join lateral (
    select first_failure_at
    from leasehold.outcomes
    where job_id = v.job_id
    limit 1
  ) o on true
