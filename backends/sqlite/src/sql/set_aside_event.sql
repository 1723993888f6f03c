-- Ends an event that cannot be read, undelivered: those behind it go on, and a replay takes it up again
-- once it is mended. One that another claim holds is left alone.
-- ?1 id, ?2 now, ?3 the claim that met it, ?4 why.
update leasehold_events
set state = 'dead_letter', failure = ?4, finished_at = ?2, worker_id = null, lease_expires_at = null,
  heartbeat_at = null, lease_ms = null
where id = ?1
  and (state = 'waiting' or (state = 'leased' and (lease_expires_at <= ?2 or claim_id = ?3)))
