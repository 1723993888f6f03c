-- Stores an answer or its mark, in place of one past its end; an answer also in place of its mark.
-- ?1 scope, ?2 key, ?3 hash, ?4 response, ?5 now, ?6 its end. No row: one that still counts is there.
insert into leasehold_records as held (scope, key, hash, response, created_at, expires_at)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (scope, key) do update
set hash = excluded.hash, response = excluded.response, created_at = excluded.created_at,
  expires_at = excluded.expires_at
where held.expires_at <= ?5
  or (held.response is null and held.hash = excluded.hash and excluded.response is not null)
