-- Writes back what can change of an event. ?1 event, then the columns in their order.
update leasehold_events
set state = ?2, run_at = ?3, attempts = ?4, claim_version = ?5, claim_id = ?6, last_verdict = ?7,
  worker_id = ?8, lease_expires_at = ?9, heartbeat_at = ?10, lease_ms = ?11, failure = ?12,
  updated_at = ?13, finished_at = ?14
where id = ?1
