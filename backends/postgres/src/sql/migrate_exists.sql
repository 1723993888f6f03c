-- Whether the schema is there, and whether the table of applied migrations is. $1 schema.
select exists (select 1 from pg_catalog.pg_namespace where nspname = $1),
  exists (
    select 1
    from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = 'schema' and c.relkind = 'r'
  )
