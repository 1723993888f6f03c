-- A bucket of rate tokens. ?1 bucket.
-- Differs: PostgreSQL locks it, and tells the time after the lock.
select level, at, full_at
from leasehold_tokens
where bucket = ?1
