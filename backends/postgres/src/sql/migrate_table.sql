-- Makes the table of applied migrations.
create table if not exists leasehold.schema (
  version bigint primary key,
  checksum bytea not null,
  applied_at timestamptz not null,
  min_reader bigint not null
)
