-- Registers a lifecycle. $1 name, $2 revision, $3 hash, $4 definition. No row: it was there.
insert into leasehold.lifecycles (name, revision, hash, definition)
values ($1, $2, $3, $4)
on conflict (name, revision) do nothing
