-- Passes keys to other jobs where some jobs hold them; when they lapse stays. $1 scopes, $2 keys, $3 the
-- jobs that get them, $4 those that held them. A key that another takes meanwhile stays with that one.
with rows as materialized (
  select k.ctid as at, v.job_id, v.holder
  from unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[]) as v (scope, key, job_id, holder)
    cross join lateral (
      select ctid, job_id
      from leasehold.keys
      where scope = v.scope and key = v.key
      -- Keeps one walk of the index for each key.
      offset 0
    ) k
  where k.job_id = v.holder
)
update leasehold.keys
set job_id = rows.job_id
from rows
where keys.ctid = rows.at and keys.ctid = any(array(select at from rows)) and keys.job_id = rows.holder
