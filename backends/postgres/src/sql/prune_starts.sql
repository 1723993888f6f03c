-- Lets go of buckets of starts that are full again. $1 the last end to go, $2 limit.
delete from leasehold.starts
where full_at <= $1 and ctid = any(array(
  select ctid
  from leasehold.starts
  where full_at <= $1
  order by full_at, queue, partition
  limit $2
  for update skip locked
))
