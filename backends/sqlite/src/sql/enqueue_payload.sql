-- The payload of a job enqueued in a caller's transaction, where it is new and too long for its row.
-- ?1 job, ?2 payload.
insert into leasehold_payloads (job_id, payload)
select ?1, ?2
where exists (select 1 from leasehold_jobs where id = ?1 and payload is null)
on conflict (job_id) do nothing
