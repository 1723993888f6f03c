-- The caller's own table in tests.
create table if not exists lab_rows (body text not null) strict
