-- A page of documents by key. $1 namespace, $2 the least key, $3 the key to begin after, $4 what lies
-- behind the last key, $5 now, $6 limit.
select namespace, key, version, body, created_at, updated_at, expires_at
from leasehold.documents
where namespace = $1 and key >= $2 and key > $3 and key < $4
  and body is not null and (expires_at is null or expires_at > $5)
order by key
limit $6
