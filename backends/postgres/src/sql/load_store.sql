-- The epoch, the limit over all queues, and the time. $1 the time in tests, else null.
select epoch::bigint, max_leased, coalesce($1, clock_timestamp())
from leasehold.store
where id = 1
