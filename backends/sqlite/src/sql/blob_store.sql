-- Keeps bytes in place of what is there. ?1 namespace, ?2 key, ?3 bytes, ?4 now, ?5 their end.
insert into leasehold_blobs (namespace, key, bytes, created_at, expires_at)
values (?1, ?2, ?3, ?4, ?5)
on conflict (namespace, key) do update
set bytes = excluded.bytes, created_at = excluded.created_at, expires_at = excluded.expires_at
