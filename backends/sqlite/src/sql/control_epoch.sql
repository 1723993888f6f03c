-- Sets the epoch. ?1 epoch.
update leasehold_store
set epoch = ?1
where id = 1
