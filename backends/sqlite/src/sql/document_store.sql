-- Stores a document in place of the version that was looked at. ?1 namespace, ?2 key, ?3 version,
-- ?4 body, ?5 made, ?6 put, ?7 its end, ?8 the version before; null: there was none.
-- No row: another transaction came first.
insert into leasehold_documents as held (namespace, key, version, body, created_at, updated_at, expires_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (namespace, key) do update
set version = excluded.version, body = excluded.body, created_at = excluded.created_at,
  updated_at = excluded.updated_at, expires_at = excluded.expires_at
where held.version = ?8
