-- Candidates of one priority: one range of the index, in the claim order.
-- ?1 queue, ?2 priority, ?3 now, ?4 limit.
-- Differs: here the rows are written one by one afterwards, by write_job.sql.
select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at
from leasehold_jobs
where state = 'waiting' and held = 0 and queue = ?1 and priority = ?2 and run_at <= ?3
order by run_at, id
limit ?4
