-- Leased events whose lease has run out, in id order, locked where they are free.
-- $1 now, $2 topics or null for all, $3 limit.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from leasehold.events
where state = 'leased' and lease_expires_at <= $1 and ($2::text[] is null or topic = any($2))
order by id
limit $3
for no key update skip locked
