-- Lets go of buckets of rate tokens that are full again. $1 the last end to go, $2 limit.
delete from leasehold.tokens
where full_at <= $1 and ctid = any(array(
  select ctid
  from leasehold.tokens
  where full_at <= $1
  order by full_at, bucket
  limit $2
  for update skip locked
))
