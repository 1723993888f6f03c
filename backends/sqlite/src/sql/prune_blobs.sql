-- Lets go of blobs past their end. ?1 the last end to go, ?2 limit.
delete from leasehold_blobs
where rowid in (
  select rowid
  from leasehold_blobs
  where expires_at <= ?1
  order by expires_at, namespace, key
  limit ?2
)
