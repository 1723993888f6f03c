-- Passes keys to other jobs where some jobs hold them; when they lapse stays. $1 scopes, $2 keys, $3 the
-- jobs that get them, $4 those that held them.
update leasehold.keys held
set job_id = v.job_id
from unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[]) as v (scope, key, job_id, holder)
where held.scope = v.scope and held.key = v.key and held.job_id = v.holder
