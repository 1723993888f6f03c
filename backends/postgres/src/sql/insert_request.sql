-- What jobs were asked for. $1 jobs, then the columns in their order. One that is there belongs to a
-- job that came first, which insert_job.sql tells.
insert into leasehold.requests (
  job_id, payload, hash, scope, key, subject, subject_version, traceparent
)
select *
from unnest(
  $1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[]
)
on conflict (job_id) do nothing
