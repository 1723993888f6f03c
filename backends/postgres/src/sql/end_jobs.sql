-- Writes back jobs that ended all in one way, without another change. $1 jobs, $2 state, $3 verdict,
-- $4 when they ended.
update leasehold.jobs
set state = $2, last_verdict = $3, worker_id = null, lease_expires_at = null, heartbeat_at = null,
  lease_ms = null, updated_at = $4, finished_at = $4
where id = any($1)
  -- Said so that no plan reads the index of leased rows instead of the ids.
  and state is not distinct from 'leased'
