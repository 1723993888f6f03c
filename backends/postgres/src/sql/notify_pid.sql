-- The number of this connection's server process, which its own wake-ups carry.
select pg_backend_pid()
