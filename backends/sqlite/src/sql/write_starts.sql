-- Stores what a partition may start. ?1 queue, ?2 partition, ?3 level, ?4 when it was so, ?5 when a start
-- is free, ?6 when it is full.
insert into leasehold_starts (queue, partition, level, at, open_at, full_at)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (queue, partition) do update
set level = excluded.level, at = excluded.at, open_at = excluded.open_at, full_at = excluded.full_at
