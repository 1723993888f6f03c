-- Writes back what can change of a job. ?1 job, then the columns in their order.
update leasehold_jobs
set state = ?2, stage = ?3, run_at = ?4, held = ?5, again = ?6, attempts = ?7, attempts_max = ?8,
  executions = ?9, claim_version = ?10, claim_id = ?11, last_verdict = ?12, worker_id = ?13,
  lease_expires_at = ?14, heartbeat_at = ?15, lease_ms = ?16, step = ?17, cancel_requested = ?18,
  transition_seq = ?19, event_seq = ?20, updated_at = ?21, started_at = ?22, finished_at = ?23
where id = ?1
