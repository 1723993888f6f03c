-- Puts a job that cannot be read to rest: it waits until somebody wakes it. One that another claim holds
-- is left alone. ?1 id, ?2 now, ?3 the claim that met it, ?4 the end of time.
update leasehold_jobs
set state = 'waiting', run_at = ?4, worker_id = null, lease_expires_at = null, heartbeat_at = null,
  lease_ms = null
where id = ?1
  and (state = 'waiting' or (state = 'leased' and (lease_expires_at <= ?2 or claim_id = ?3)))
