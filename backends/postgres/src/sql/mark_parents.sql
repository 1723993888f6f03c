-- Notes on locked rows that a job waits for their end: what ends rows without a look at waits leaves them out, and no
-- transaction of an older snapshot can lock them. $1 jobs.
-- Differs: SQLite has one writer at a time, who looks at waits.
update leasehold.jobs
set waited = true
where id = any($1)
