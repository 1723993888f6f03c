-- Takes keys that are free, have lapsed, or are these jobs' already. Fewer rows: others have them.
-- $1 scopes, $2 keys, $3 jobs, $4 hashes, $5 when they lapse, $6 now.
insert into leasehold.keys as held (scope, key, job_id, hash, expires_at)
select *
from unnest($1::text[], $2::text[], $3::uuid[], $4::bytea[], $5::timestamptz[])
on conflict (scope, key) do update
set job_id = excluded.job_id, hash = excluded.hash, expires_at = excluded.expires_at
where held.job_id = excluded.job_id or held.expires_at <= $6
