-- Lets go of the versions of documents that went long enough ago. $1 the last end to go, $2 limit.
delete from leasehold.documents
where expires_at <= $1 and body is null and ctid = any(array(
  select ctid
  from leasehold.documents
  where expires_at <= $1 and body is null
  order by expires_at, namespace, key
  limit $2
  for update skip locked
))
