-- The bytes of a blob that has not ended. $1 namespace, $2 key, $3 now.
select bytes
from leasehold.blobs
where namespace = $1 and key = $2 and (expires_at is null or expires_at > $3)
