-- Lets go of tombstones. $1 the last pruning to go, $2 limit.
delete from leasehold.tombstones
where pruned_at <= $1 and ctid = any(array(
  select ctid
  from leasehold.tombstones
  where pruned_at <= $1
  order by pruned_at, job_id
  limit $2
  for update skip locked
))
