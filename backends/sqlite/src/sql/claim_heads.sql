-- The rows that stand first in their partitions, as in claim.sql. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select j.id, j.kind, j.lifecycle, j.revision, j.stage, j.priority, j.run_at, j.again, j.log, j.attempts,
  j.attempts_max, j.executions, j.claim_version, j.cancel_requested, j.transition_seq, j.event_seq,
  j.created_at, j.updated_at, j.partition,
  coalesce(j.payload, (select p.payload from leasehold_payloads p where p.job_id = j.id)),
  j.subject, j.subject_version, j.traceparent,
  iif(j.claim_version > 0 or j.again = 1,
    (select o.checkpoint from leasehold_outcomes o where o.job_id = j.id), null)
from list
  cross join leasehold_jobs j on j.id = substr(?1, at + 1, 16)
