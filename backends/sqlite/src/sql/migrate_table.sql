-- Makes the table of applied migrations.
create table if not exists leasehold_schema (
  version integer primary key,
  checksum blob not null,
  applied_at integer not null,
  min_reader integer not null
) strict
