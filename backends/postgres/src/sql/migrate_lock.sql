-- Lets one process migrate at a time, until its transaction ends. $1 schema.
select pg_advisory_xact_lock(hashtextextended('leasehold ' || $1, 0))::text
