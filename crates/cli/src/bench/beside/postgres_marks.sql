-- Adds the low-water mark of a crowd, early enough for all of it, so that claims find it.
-- $1 queue, $2 seconds until due.
insert into leasehold.low_water (queue, priority, run_at)
values ($1, 0, now() + make_interval(secs => $2) - interval '1 day')
