-- Leased events whose lease has run out, in id order.
-- ?1 now, ?2 topics as a JSON array or null for all, ?3 limit.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from leasehold_events
where state = 'leased' and lease_expires_at <= ?1
  and (?2 is null or topic in (select value from json_each(?2)))
order by id
limit ?3
