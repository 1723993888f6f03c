-- What was asked for with each job, as tests see it. A payload that no job's row points at shows too, and
-- so does one beside the payload of a row.
select id as job_id, payload, hash, scope, key, subject, subject_version, traceparent, replay_of
from leasehold_jobs
where payload is not null
union all
select p.job_id, p.payload, j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  j.replay_of
from leasehold_payloads p
  left join leasehold_jobs j on j.id = p.job_id
