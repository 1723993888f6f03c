-- Notes an applied migration. $1 version, $2 checksum, $3 the oldest schema that may read on.
insert into leasehold.schema (version, checksum, applied_at, min_reader)
values ($1, $2, clock_timestamp(), $3)
