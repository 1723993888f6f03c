-- Makes a worker's name known. $1 worker, $2 name, $3 now. No row: it was known already.
insert into leasehold.workers as w (id, name, introduced_at)
values ($1, $2, $3)
on conflict (id) do update
set name = excluded.name
where w.name <> excluded.name
