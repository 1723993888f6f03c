-- The epoch and the limit over all queues.
select epoch, max_leased
from leasehold_store
where id = 1
