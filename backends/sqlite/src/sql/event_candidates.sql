-- Due events of a topic, the first undelivered one of each ordering key only.
-- ?1 now, ?2 topic, ?3 limit.
-- Differs: one range of the index a topic; PostgreSQL takes a list of topics.
select e.id, e.topic, e.ordering, e.order_key, e.sequence, e.payload, e.traceparent, e.state,
  e.ordered, e.run_at, e.attempts, e.attempts_max, e.claim_version, e.claim_id, e.last_verdict,
  e.worker_id, e.lease_expires_at, e.heartbeat_at, e.lease_ms, e.failure, e.created_at,
  e.updated_at, e.finished_at
from leasehold_events e
where e.state = 'waiting' and e.topic = ?2 and e.run_at <= ?1
  and (e.ordered = 0 or not exists (
    select 1
    from leasehold_events earlier indexed by leasehold_events_undelivered -- not the delivered ones
    where earlier.ordered = 1 and earlier.state in ('waiting', 'leased')
      and earlier.ordering = e.ordering and earlier.order_key = e.order_key
      and earlier.sequence < e.sequence
  ))
order by e.run_at, e.id
limit ?3
