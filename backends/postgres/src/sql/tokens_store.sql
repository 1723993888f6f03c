-- Stores a bucket in place of the one that was looked at. $1 bucket, $2 level, $3 at, $4 when it is full,
-- $5 level before, $6 at before; null: there was none. No row: another transaction came first.
insert into leasehold.tokens as held (bucket, level, at, full_at)
values ($1, $2, $3, $4)
on conflict (bucket) do update
set level = excluded.level, at = excluded.at, full_at = excluded.full_at
where held.level = $5 and held.at = $6
