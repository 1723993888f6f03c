-- Lets go of blobs past their end. $1 the last end to go, $2 limit.
delete from leasehold.blobs
where expires_at <= $1 and ctid = any(array(
  select ctid
  from leasehold.blobs
  where expires_at <= $1
  order by expires_at, namespace, key
  limit $2
  for update skip locked
))
