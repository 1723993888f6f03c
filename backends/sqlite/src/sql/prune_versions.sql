-- Lets go of the versions of documents that went long enough ago. ?1 the last end to go, ?2 limit.
delete from leasehold_documents
where rowid in (
  select rowid
  from leasehold_documents
  where expires_at <= ?1 and body is null
  order by expires_at, namespace, key
  limit ?2
)
