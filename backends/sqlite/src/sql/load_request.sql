-- What jobs were asked for, and what earlier executions left. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select j.id,
  coalesce(j.payload, (select p.payload from leasehold_payloads p where p.job_id = j.id)),
  j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  (select o.checkpoint from leasehold_outcomes o where o.job_id = j.id)
from list
  cross join leasehold_jobs j on j.id = substr(?1, at + 1, 16)
