-- A document's row, whatever its end, locked, with the time after the lock. $1 namespace, $2 key,
-- $3 the time in tests, else null.
with locked as materialized (
  select namespace, key, version, body, created_at, updated_at, expires_at
  from leasehold.documents
  where namespace = $1 and key = $2
  for update
)
select locked.*, coalesce($3, clock_timestamp())
from locked
