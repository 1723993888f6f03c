-- The caller's own table in tests.
create table if not exists leasehold.lab_rows (text text not null)
