-- Lets go of ended events. $1 state, $2 the last end to go, $3 limit.
delete from leasehold.events
where state is not distinct from $1 and id = any(array(
  select id
  from leasehold.events
  where finished_at is not null and finished_at <= $2 and state = $1
  order by finished_at, id
  limit $3
  for update skip locked
))
