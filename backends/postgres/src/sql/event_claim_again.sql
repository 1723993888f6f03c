-- What an earlier send of the same claim request took from the outbox and still holds.
-- $1 claim, $2 worker, $3 now, $4 limit.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from leasehold.events
where state = 'leased' and claim_id = $1 and worker_id = $2 and lease_expires_at > $3
order by run_at, id
limit $4
for no key update
