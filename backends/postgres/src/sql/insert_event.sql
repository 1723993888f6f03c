-- New events; those of a job go along in its trace unless they name one. $1 to $23: the columns in their
-- order, $24 their jobs. Fewer rows: others came first.
insert into leasehold.events (
  id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
)
select v.id, v.topic, v.ordering, v.order_key, v.sequence, v.payload,
  coalesce(v.traceparent, (select j.traceparent from leasehold.jobs j where j.id = v.job)), v.state,
  v.ordered, v.run_at, v.attempts, v.attempts_max, v.claim_version, v.claim_id, v.last_verdict,
  v.worker_id, v.lease_expires_at, v.heartbeat_at, v.lease_ms, v.failure, v.created_at, v.updated_at,
  v.finished_at
from unnest(
  $1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
  $9::boolean[], $10::timestamptz[], $11::bigint[], $12::bigint[], $13::bigint[], $14::uuid[],
  $15::text[], $16::uuid[], $17::timestamptz[], $18::timestamptz[], $19::bigint[], $20::text[],
  $21::timestamptz[], $22::timestamptz[], $23::timestamptz[], $24::uuid[]
) as v (
  id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at, attempts,
  attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at, heartbeat_at,
  lease_ms, failure, created_at, updated_at, finished_at, job
)
on conflict (id) do nothing
