-- Deletes a blob, and tells whether it had not ended. $1 namespace, $2 key, $3 now.
delete from leasehold.blobs
where namespace = $1 and key = $2
returning expires_at is null or expires_at > $3
