-- Who holds a key. $1 scope, $2 key.
select job_id
from leasehold.keys
where scope = $1 and key = $2
