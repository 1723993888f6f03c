-- Lets go of keys past their end. ?1 the last end to go, ?2 limit.
delete from leasehold_keys
where rowid in (
  select rowid
  from leasehold_keys
  where expires_at <= ?1
  order by expires_at, scope, key
  limit ?2
)
