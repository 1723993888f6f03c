-- Lets go of buckets of rate tokens that are full again. ?1 the last end to go, ?2 limit.
delete from leasehold_tokens
where rowid in (
  select rowid
  from leasehold_tokens
  where full_at <= ?1
  order by full_at, bucket
  limit ?2
)
