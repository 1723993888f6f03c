-- Waits until no marks are being raised, and keeps others from it. $1 the name of the lock.
select pg_advisory_xact_lock_shared(hashtextextended($1, 0))
