-- What jobs were asked for. ?1 jobs, id after id in one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
select job_id, payload, hash, scope, key, subject, subject_version, traceparent
from list
  cross join leasehold_requests on job_id = substr(?1, at + 1, 16)
