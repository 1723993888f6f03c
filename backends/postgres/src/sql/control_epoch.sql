-- Sets the epoch. $1 epoch.
update leasehold.store
set epoch = $1::bigint
where id = 1
