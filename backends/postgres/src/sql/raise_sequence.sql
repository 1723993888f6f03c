-- Takes the next numbers of free ordering keys. $1 keys, $2 how many of each.
insert into leasehold.sequences as s (key, last)
select *
from unnest($1::text[], $2::bigint[])
on conflict (key) do update
set last = s.last + excluded.last
returning s.key, s.last
