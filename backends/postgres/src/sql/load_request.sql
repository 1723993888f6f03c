-- What jobs were asked for. $1 jobs.
select job_id, payload, hash, scope, key, subject, subject_version, traceparent
from leasehold.requests
where job_id = any($1)
