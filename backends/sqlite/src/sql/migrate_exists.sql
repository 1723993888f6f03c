-- Whether the table of applied migrations is there.
select exists (select 1 from sqlite_master where type = 'table' and name = 'leasehold_schema')
