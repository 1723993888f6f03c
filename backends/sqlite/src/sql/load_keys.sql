-- Who holds a key, and where the holder is; no state when it is gone. ?1 scope, ?2 key.
select k.job_id, k.hash, k.expires_at, j.state
from leasehold_keys k
  left join leasehold_jobs j on j.id = k.job_id
where k.scope = ?1 and k.key = ?2
