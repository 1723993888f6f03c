-- Keeps what executions left; what is null stays. $1 jobs, $2 checkpoints, $3 results, $4 failures,
-- $5 when they failed.
insert into leasehold.outcomes as o (
  job_id, checkpoint, result, failure, first_failure_at, last_failure_at
)
select v.job_id, v.checkpoint, v.result, v.failure, v.failed_at, v.failed_at
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
  as v (job_id, checkpoint, result, failure, failed_at)
on conflict (job_id) do update
set checkpoint = coalesce(excluded.checkpoint, o.checkpoint),
  result = coalesce(excluded.result, o.result),
  failure = coalesce(excluded.failure, o.failure),
  first_failure_at = coalesce(o.first_failure_at, excluded.first_failure_at),
  last_failure_at = coalesce(excluded.last_failure_at, o.last_failure_at)
