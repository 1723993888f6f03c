-- Wakes the waiters of other processes. $1 channel, $2 what may be ready.
select pg_notify($1, $2)::text
