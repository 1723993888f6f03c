-- Candidates of no partition and of one priority, with what was asked for and what earlier executions
-- left: one range of the index, in the claim order. ?1 queue, ?2 priority, ?3 now, ?4 limit.
-- Differs: here the rows are written afterwards, by claim_jobs.sql.
select j.id, j.kind, j.lifecycle, j.revision, j.stage, j.priority, j.run_at, j.again, j.log, j.attempts,
  j.attempts_max, j.executions, j.claim_version, j.cancel_requested, j.transition_seq, j.event_seq,
  j.created_at, j.updated_at, j.partition,
  coalesce(j.payload, (select p.payload from leasehold_payloads p where p.job_id = j.id)),
  j.subject, j.subject_version, j.traceparent,
  iif(j.claim_version > 0 or j.again = 1,
    (select o.checkpoint from leasehold_outcomes o where o.job_id = j.id), null)
from leasehold_jobs j
where j.state = 'waiting' and j.held = 0 and j.partition is null and j.queue = ?1 and j.priority = ?2
  and j.run_at <= ?3
order by j.run_at, j.id
limit ?4
