-- What jobs were asked for, and what earlier executions left. $1 jobs.
select j.id, j.payload, j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  (select o.checkpoint from leasehold.outcomes o where o.job_id = j.id)
from leasehold.jobs j
where j.id = any($1)
