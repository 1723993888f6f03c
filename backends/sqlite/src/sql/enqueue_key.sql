-- Takes the key of an enqueue in a caller's transaction where that comes to a new job.
-- ?1 job, ?2 hash, ?3 scope, ?4 key, ?5 lifecycle, ?6 the id's time in ms, ?7 how far off that may be,
-- ?8 how long the key lasts.
insert into leasehold_keys (scope, key, job_id, hash, expires_at)
select ?3, ?4, ?1, ?2, min(c.now_us + ?8, 253402300799999999)
from leasehold_clock c
where c.id = 1 and ?4 is not null and coalesce(abs(c.now_us / 1000 - ?6) <= ?7, 1)
  and exists (select 1 from leasehold_lifecycles where name = ?5)
  and not exists (select 1 from leasehold_jobs where id = ?1)
  and not exists (select 1 from leasehold_tombstones where job_id = ?1)
on conflict (scope, key) do update
set job_id = excluded.job_id, hash = excluded.hash, expires_at = excluded.expires_at
where leasehold_keys.expires_at <= (select now_us from leasehold_clock where id = 1)
  or (leasehold_keys.job_id = excluded.job_id and leasehold_keys.hash = excluded.hash)
