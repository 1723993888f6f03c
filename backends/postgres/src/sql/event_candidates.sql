-- Due events, the first undelivered one of each ordering key only, locked where they are free.
-- $1 now, $2 topics or null for all, $3 limit.
select e.id, e.topic, e.ordering, e.order_key, e.sequence, e.payload, e.traceparent, e.state,
  e.ordered, e.run_at, e.attempts, e.attempts_max, e.claim_version, e.claim_id, e.last_verdict,
  e.worker_id, e.lease_expires_at, e.heartbeat_at, e.lease_ms, e.failure, e.created_at,
  e.updated_at, e.finished_at
from leasehold.events e
where e.state = 'waiting' and e.run_at <= $1 and ($2::text[] is null or e.topic = any($2))
  and (not e.ordered or not exists (
    select 1
    from leasehold.events earlier
    where earlier.ordered and earlier.state in ('waiting', 'leased')
      and earlier.ordering = e.ordering and earlier.order_key = e.order_key
      and earlier.sequence < e.sequence
  ))
order by e.run_at, e.id
limit $3
for no key update of e skip locked
