-- Lets go of documents past their end; their versions stay for a while. ?1 the last end to go, ?2 limit,
-- ?3 until when the versions stay.
update leasehold_documents
set body = null, expires_at = ?3
where rowid in (
  select rowid
  from leasehold_documents
  where expires_at <= ?1 and body is not null
  order by expires_at, namespace, key
  limit ?2
)
