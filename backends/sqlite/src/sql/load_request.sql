-- What a job was asked for. ?1 job.
select payload, hash, scope, key, subject, subject_version, traceparent
from leasehold_requests
where job_id = ?1
