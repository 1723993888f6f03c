-- Writes back what can change of jobs. $1 jobs, then the columns in their order.
update leasehold.jobs
set state = v.state, stage = v.stage, run_at = v.run_at, held = v.held, again = v.again,
  attempts = v.attempts, attempts_max = v.attempts_max, executions = v.executions,
  claim_version = v.claim_version, claim_id = v.claim_id, last_verdict = v.last_verdict,
  worker_id = v.worker_id, lease_expires_at = v.lease_expires_at, heartbeat_at = v.heartbeat_at,
  lease_ms = v.lease_ms, step = v.step, cancel_requested = v.cancel_requested,
  transition_seq = v.transition_seq, event_seq = v.event_seq, updated_at = v.updated_at,
  started_at = v.started_at, finished_at = v.finished_at
from unnest(
  $1::uuid[], $2::text[], $3::smallint[], $4::timestamptz[], $5::boolean[], $6::boolean[],
  $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::uuid[], $12::text[], $13::uuid[],
  $14::timestamptz[], $15::timestamptz[], $16::bigint[], $17::bigint[], $18::boolean[],
  $19::bigint[], $20::bigint[], $21::timestamptz[], $22::timestamptz[], $23::timestamptz[]
) as v (
  id, state, stage, run_at, held, again, attempts, attempts_max, executions, claim_version,
  claim_id, last_verdict, worker_id, lease_expires_at, heartbeat_at, lease_ms, step,
  cancel_requested, transition_seq, event_seq, updated_at, started_at, finished_at
)
where jobs.id = v.id and jobs.id = any($1)
