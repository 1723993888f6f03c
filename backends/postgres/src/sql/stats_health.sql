-- The server's version, how long the oldest transaction has kept rows from being vacuumed, in
-- seconds, and how many dead rows the hot tables hold. $1 schema.
select current_setting('server_version'),
  coalesce((
    select extract(epoch from max(clock_timestamp() - xact_start))::bigint
    from pg_stat_activity
    where backend_xmin is not null and datname = current_database()
  ), 0),
  coalesce((
    select sum(n_dead_tup)::bigint
    from pg_stat_user_tables
    where schemaname = $1 and relname in ('jobs', 'events')
  ), 0)
