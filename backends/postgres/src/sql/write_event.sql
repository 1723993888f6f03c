-- Writes back what can change of events. $1 events, then the columns in their order.
update leasehold.events
set state = v.state, run_at = v.run_at, attempts = v.attempts, claim_version = v.claim_version,
  claim_id = v.claim_id, last_verdict = v.last_verdict, worker_id = v.worker_id,
  lease_expires_at = v.lease_expires_at, heartbeat_at = v.heartbeat_at, lease_ms = v.lease_ms,
  failure = v.failure, updated_at = v.updated_at, finished_at = v.finished_at
from unnest(
  $1::uuid[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::uuid[], $7::text[],
  $8::uuid[], $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::text[],
  $13::timestamptz[], $14::timestamptz[]
) as v (
  id, state, run_at, attempts, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, updated_at, finished_at
)
where events.id = v.id and events.id = any($1)
