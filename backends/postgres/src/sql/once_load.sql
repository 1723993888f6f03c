-- The stored answer to a request. $1 scope, $2 key.
select hash, response, expires_at
from leasehold.records
where scope = $1 and key = $2
