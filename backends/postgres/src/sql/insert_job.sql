-- New jobs. $1 to $39: the columns in their order. Fewer rows: others came first.
insert into leasehold.jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, payload, hash, scope, key, subject,
  subject_version, traceparent, partition, waited
)
select *
from unnest(
  $1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::smallint[],
  $8::smallint[], $9::timestamptz[], $10::boolean[], $11::boolean[], $12::boolean[], $13::bigint[],
  $14::bigint[], $15::bigint[], $16::bigint[], $17::uuid[], $18::text[], $19::uuid[],
  $20::timestamptz[], $21::timestamptz[], $22::bigint[], $23::bigint[], $24::boolean[],
  $25::bigint[], $26::bigint[], $27::timestamptz[], $28::timestamptz[], $29::timestamptz[],
  $30::timestamptz[], $31::text[], $32::bytea[], $33::text[], $34::text[], $35::text[],
  $36::bigint[], $37::text[], $38::text[], $39::boolean[]
)
on conflict (id) do nothing
