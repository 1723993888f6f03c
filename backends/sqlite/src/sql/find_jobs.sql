-- A page of jobs by id. ?1 the id to begin after, ?2 queue, ?3 state, ?4 kind, ?5 subject; null fits
-- all; ?6 limit.
select j.id, j.queue, j.kind, j.lifecycle, j.revision, j.state, j.stage, j.priority, j.run_at, j.held,
  j.again, j.log, j.attempts, j.attempts_max, j.executions, j.claim_version, j.claim_id,
  j.last_verdict, j.worker_id, j.lease_expires_at, j.heartbeat_at, j.lease_ms, j.step,
  j.cancel_requested, j.transition_seq, j.event_seq, j.created_at, j.updated_at, j.started_at,
  j.finished_at, j.partition,
  coalesce(j.payload, (select p.payload from leasehold_payloads p where p.job_id = j.id)),
  j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  o.checkpoint, o.result, o.failure, j.replay_of
from leasehold_jobs j
  left join leasehold_outcomes o on o.job_id = j.id
where j.id > ?1
  and (?2 is null or j.queue = ?2) and (?3 is null or j.state = ?3)
  and (?4 is null or j.kind = ?4) and (?5 is null or j.subject = ?5)
  and (?7 is null or j.partition = ?7)
order by j.id
limit ?6
