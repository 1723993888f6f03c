-- Event rows, locked in id order; each with the time after its lock and the epoch.
-- $1 events, $2 the time in tests, else null.
with locked as materialized (
  select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
    attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
    heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
  from leasehold.events
  where id = any($1)
  order by id
  for no key update
)
select locked.*, coalesce($2, clock_timestamp()), s.epoch::bigint
from locked
  cross join leasehold.store s
