-- New events. $1 to $23: the columns in their order. Fewer rows: others came first.
insert into leasehold.events (
  id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
)
select *
from unnest(
  $1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
  $9::boolean[], $10::timestamptz[], $11::bigint[], $12::bigint[], $13::bigint[], $14::uuid[],
  $15::text[], $16::uuid[], $17::timestamptz[], $18::timestamptz[], $19::bigint[], $20::text[],
  $21::timestamptz[], $22::timestamptz[], $23::timestamptz[]
)
on conflict (id) do nothing
