-- The store's row, locked: the epoch, the limit over all queues, and the time after the lock.
-- $1 the time in tests, else null.
with locked as materialized (
  select epoch, max_leased
  from leasehold.store
  where id = 1
  for update
)
select epoch::bigint, max_leased, coalesce($1, clock_timestamp())
from locked
