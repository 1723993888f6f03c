-- A payload too long for its job's row. ?1 job, ?2 payload.
insert into leasehold_payloads (job_id, payload)
values (?1, ?2)
