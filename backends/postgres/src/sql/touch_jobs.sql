-- Writes locked rows as they are, so that no transaction of an older snapshot can lock them. $1 jobs.
-- Differs: SQLite has one writer at a time, whose snapshot is the newest.
update leasehold.jobs
set step = step
where id = any($1)
