-- Claims the due rows that stand first in their partitions; under the lock of the queue's row.
-- $1 jobs, $2 now, $3 claim, $4 worker, $5 when the lease ends, $6 its length, $7 jobs this transaction
-- has reclaimed (their version is raised already).
with picked as materialized (
  select array(
    select id
    from leasehold.jobs
    where id = any($1) and state is not distinct from 'waiting' and not held and run_at <= $2
    for no key update skip locked
  ) as ids
)
update leasehold.jobs
set state = 'leased', claim_version = claim_version + case when id = any($7) then 0 else 1 end,
  claim_id = $3, last_verdict = null, worker_id = $4, lease_expires_at = $5, heartbeat_at = $2,
  lease_ms = $6, step = 0, attempts = attempts + 1, executions = executions + 1,
  updated_at = greatest(updated_at, $2), started_at = $2
where id = any((select ids from picked)::uuid[])
  -- Said so that no plan reads the claim index instead of the ids.
  and state is not distinct from 'waiting' and not held
returning id, kind, lifecycle, revision, stage, priority, run_at, again, log, attempts, attempts_max,
  executions, claim_version, cancel_requested, transition_seq, event_seq, created_at, updated_at,
  partition, payload, subject, subject_version, traceparent
