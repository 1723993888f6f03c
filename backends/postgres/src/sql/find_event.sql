-- One event, where it fits a filter. Parameters as in find_events.sql; $2 is never null.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from leasehold.events
where id = $2 and id > $1
  and ($3::text is null or topic = $3) and ($4::text is null or state = $4)
  and ($5::text is null or (ordering = $5 and order_key is not distinct from $6))
limit $7
