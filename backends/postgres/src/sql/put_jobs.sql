-- An enqueue that is a transaction by itself, and whether it could be done so; the rest of
-- insert_same.sql holds here too.
-- Differs: SQLite's calls share one transaction.
-- $1 the name of the lock of the low-water marks, $2 ids in order, $3 payloads, $4 hashes, $5 queue, $6 kind,
-- $7 lifecycle, $8 its newest revision, $9 priority, $10 log unless the queue says otherwise, $11 attempts,
-- $12 and $13 between which times the ids fit, $14 the time in tests, else null.
select leasehold.put_jobs(
    $1::text, $2::uuid[], $3::text[], $4::bytea[], $5::text, $6::text, $7::text, $8::bigint,
    $9::smallint, $10::boolean, $11::bigint, $12::timestamptz, $13::timestamptz, $14::timestamptz
  )
