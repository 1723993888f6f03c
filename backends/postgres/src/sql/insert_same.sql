-- New jobs that differ only in id and payload, and name neither key, subject, trace nor partition; only in
-- transactions of the store's own: an id that is taken is an error.
-- $1 ids, $2 payloads, $3 hashes, $4 queue, $5 kind, $6 lifecycle, $7 revision, $8 priority, $9 the first
-- claim's time, $10 held, $11 log, $12 attempts, $13 now, $14 whether others wait for them.
insert into leasehold.jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log, attempts,
  attempts_max, executions, claim_version, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, payload, hash, scope, waited
)
select v.id, $4, $5, $6, $7, 'waiting', 0, $8, $9, $10, false, $11, 0, $12, 0, 0, 0, false, 0, 0, $13,
  $13, v.payload, v.hash, '', $14
from unnest($1::uuid[], $2::text[], $3::bytea[]) as v (id, payload, hash)
