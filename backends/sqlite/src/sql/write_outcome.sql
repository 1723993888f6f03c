-- Keeps what an execution left; what is null stays. ?1 job, ?2 checkpoint, ?3 result, ?4 failure,
-- ?5 when it failed.
insert into leasehold_outcomes (
  job_id, checkpoint, result, failure, first_failure_at, last_failure_at
) values (?1, ?2, ?3, ?4, ?5, ?5)
on conflict (job_id) do update
set checkpoint = coalesce(excluded.checkpoint, checkpoint),
  result = coalesce(excluded.result, result),
  failure = coalesce(excluded.failure, failure),
  first_failure_at = coalesce(first_failure_at, excluded.first_failure_at),
  last_failure_at = coalesce(excluded.last_failure_at, last_failure_at)
