-- As insert_same.sql, for jobs that name a key, a subject, a trace or a partition. $14 scopes, $15 keys,
-- $16 subjects, $17 their versions, $18 traceparents, $19 partitions.
insert into leasehold.jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log, attempts,
  attempts_max, executions, claim_version, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, payload, hash, scope, key, subject,
  subject_version, traceparent, partition
)
select v.id, $4, $5, $6, $7, 'waiting', 0, $8, $9, $10, false, $11, 0, $12, 0, 0, 0, false, 0, 0, $13,
  $13, v.payload, v.hash, v.scope, v.key, v.subject, v.subject_version, v.traceparent,
  v.partition
from unnest(
  $1::uuid[], $2::text[], $3::bytea[], $14::text[], $15::text[], $16::text[], $17::bigint[],
  $18::text[], $19::text[]
) as v (id, payload, hash, scope, key, subject, subject_version, traceparent, partition)
