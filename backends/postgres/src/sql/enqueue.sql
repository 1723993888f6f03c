-- An enqueue in a caller's transaction, whole, and what it came to.
-- Differs: SQLite has no functions of its own, and takes several statements.
-- $1 the name of the lock of the low-water marks, $2 job, $3 hash, $4 scope, $5 key, $6 lifecycle, $7 the
-- id's time in ms, $8 how far off that may be, $9 queue, $10 kind, $11 priority, $12 delay, $13 the first
-- claim's time, $14 attempts, $15 payload, $16 subject, $17 its version, $18 traceparent, $19 how long
-- the key lasts, $20 to $22 how many seconds succeeded, failed and dead jobs stay, $23 the time in tests,
-- else null, $24 partition.
select outcome, job, state
from leasehold.enqueue_job(
    $1::text, $2::uuid, $3::bytea, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::text,
    $10::text, $11::bigint, $12::bigint, $13::bigint, $14::bigint, $15::text, $16::text, $17::bigint,
    $18::text, $19::bigint, $20::bigint, $21::bigint, $22::bigint, $23::bigint, $24::text
  )
