-- Who holds some keys, and where the holders are; no state when one is gone. $1 scopes, $2 keys.
select k.scope, k.key, k.job_id, k.hash, k.expires_at, j.state
from unnest($1::text[], $2::text[]) as wanted (scope, key)
  cross join lateral (
    select scope, key, job_id, hash, expires_at
    from leasehold.keys
    where scope = wanted.scope and key = wanted.key
    limit 1
  ) k
  left join lateral (
    select state
    from leasehold.jobs
    where id = k.job_id
    limit 1
  ) j on true
