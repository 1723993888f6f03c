-- What a job enqueued in a caller's transaction was asked for, where it is new.
-- ?1 job, then the columns in their order.
insert into leasehold_requests (
  job_id, payload, hash, scope, key, subject, subject_version, traceparent
)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
where exists (select 1 from leasehold_jobs where id = ?1)
on conflict (job_id) do nothing
