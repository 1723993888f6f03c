-- Logs transitions. $1 to $9: the columns in their order.
insert into leasehold.transitions (
  job_id, sequence, at, verb, from_status, to_status, claim_version, worker_id, actor
)
select *
from unnest(
  $1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::bigint[],
  $8::uuid[], $9::text[]
)
