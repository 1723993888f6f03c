-- A page of the events of an ordering key. Parameters as in find_events.sql; ?5 and ?6 are never null.
-- Differs: as in find_ids.sql.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from leasehold_events
where ordering = ?5 and order_key = ?6 and id > ?1
  and (?2 is null or id = ?2) and (?3 is null or topic = ?3) and (?4 is null or state = ?4)
order by id
limit ?7
