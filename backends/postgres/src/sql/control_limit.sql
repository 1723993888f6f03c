-- Sets the limit over all queues. $1 limit or null. No row: it was so already.
update leasehold.store
set max_leased = $1
where id = 1 and max_leased is distinct from $1
