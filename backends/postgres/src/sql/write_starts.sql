-- Stores what partitions may start. $1 queues, $2 partitions, $3 levels, $4 when they were so, $5 when a
-- start is free, $6 when they are full.
insert into leasehold.starts (queue, partition, level, at, open_at, full_at)
select *
from unnest(
  $1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[]
)
on conflict (queue, partition) do update
set level = excluded.level, at = excluded.at, open_at = excluded.open_at, full_at = excluded.full_at
