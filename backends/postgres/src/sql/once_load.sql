-- The stored answer to a request, or its mark. $1 scope, $2 key.
select hash, response, created_at, expires_at
from leasehold.records
where scope = $1 and key = $2
