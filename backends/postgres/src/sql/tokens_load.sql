-- A bucket of rate tokens, locked, with the time after the lock. $1 bucket, $2 the time in tests, else
-- null.
-- Differs: SQLite's transaction holds the one write lock.
with locked as materialized (
  select level, at, full_at
  from leasehold.tokens
  where bucket = $1
  for update
)
select locked.*, coalesce($2, clock_timestamp())
from locked
