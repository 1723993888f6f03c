-- Queues, locked by name; each with the time after its lock.
-- $1 names, $2 the time in tests, else null.
with locked as materialized (
  select name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
    created_at, partition_limit, partition_rate, partition_burst
  from leasehold.queues
  where name = any($1)
  order by name
  for update
)
select locked.*, coalesce($2, clock_timestamp())
from locked
