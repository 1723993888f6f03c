-- Who holds some keys, and where the holders are; no state when one is gone. $1 scopes, $2 keys.
select k.scope, k.key, k.job_id, k.hash, k.expires_at, j.state
from unnest($1::text[], $2::text[]) as wanted (scope, key)
  join leasehold.keys k on k.scope = wanted.scope and k.key = wanted.key
  left join leasehold.jobs j on j.id = k.job_id
