-- Takes a key that is free, has lapsed, or is this job's already. No row: another job has it.
-- ?1 scope, ?2 key, ?3 job, ?4 hash, ?5 when it lapses, ?6 now.
insert into leasehold_keys (scope, key, job_id, hash, expires_at)
values (?1, ?2, ?3, ?4, ?5)
on conflict (scope, key) do update
set job_id = excluded.job_id, hash = excluded.hash, expires_at = excluded.expires_at
where leasehold_keys.job_id = excluded.job_id or leasehold_keys.expires_at <= ?6
