-- A document's row, whatever its end. $1 namespace, $2 key.
select namespace, key, version, body, created_at, updated_at, expires_at
from leasehold.documents
where namespace = $1 and key = $2
