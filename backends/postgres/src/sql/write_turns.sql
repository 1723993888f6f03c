-- Stores turns in place of their queues' earlier ones. $1 queues, $2 turns, $3 partitions.
with gone as (
  delete from leasehold.turns before
  using unnest($1::text[], $2::bigint[]) as v (queue, turn)
  where before.queue = v.queue and before.turn < v.turn
)
insert into leasehold.turns (queue, turn, partition)
select *
from unnest($1::text[], $2::bigint[], $3::text[])
