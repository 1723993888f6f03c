-- Takes a row whose id or partition is none out of the claim order: it is held back until somebody mends it. ?1 id.
-- Differs: PostgreSQL's columns hold nothing else than ids and texts.
update leasehold_jobs
set state = 'waiting', held = 1, worker_id = null, lease_expires_at = null, heartbeat_at = null, lease_ms = null
where id = ?1
