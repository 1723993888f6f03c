-- Lets go of records past their end. ?1 the last end to go, ?2 limit.
delete from leasehold_records
where rowid in (
  select rowid
  from leasehold_records
  where expires_at <= ?1
  order by expires_at, scope, key
  limit ?2
)
