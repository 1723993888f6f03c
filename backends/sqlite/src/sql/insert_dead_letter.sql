-- Keeps a dead letter; when the job first failed stands in its outcome. ?1 job, ?2 version, ?3 queue,
-- ?4 kind, ?5 stage, ?6 error class, ?7 failure, ?8 attempts, ?9 last failure, ?10 state.
insert into leasehold_dead_letters (
  job_id, claim_version, queue, kind, stage, error_class, failure, attempts, first_failure_at,
  last_failure_at, state
) values (
  ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
  coalesce((select first_failure_at from leasehold_outcomes where job_id = ?1), ?9), ?9, ?10
)
