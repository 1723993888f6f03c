-- As insert_same.sql, for jobs that name a key, a subject, a trace or a partition. $15 scopes, $16 keys,
-- $17 subjects, $18 their versions, $19 traceparents, $20 partitions.
insert into leasehold.jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log, attempts,
  attempts_max, executions, claim_version, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, payload, hash, scope, key, subject,
  subject_version, traceparent, partition, waited
)
select v.id, $4, $5, $6, $7, 'waiting', 0, $8, $9, $10, false, $11, 0, $12, 0, 0, 0, false, 0, 0, $13,
  $13, v.payload, v.hash, v.scope, v.key, v.subject, v.subject_version, v.traceparent,
  v.partition, $14
from unnest(
  $1::uuid[], $2::text[], $3::bytea[], $15::text[], $16::text[], $17::text[], $18::bigint[],
  $19::text[], $20::text[]
) as v (id, payload, hash, scope, key, subject, subject_version, traceparent, partition)
