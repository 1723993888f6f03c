-- Writes back jobs that ended all in one way, without another change. ?1 jobs, id after id in one blob,
-- ?2 state, ?3 verdict, ?4 when they ended.
-- Differs: PostgreSQL's write_job.sql takes lists.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
update leasehold_jobs
set state = ?2, last_verdict = ?3, worker_id = null, lease_expires_at = null, heartbeat_at = null,
  lease_ms = null, updated_at = ?4, finished_at = ?4
where id in (select substr(?1, at + 1, 16) from list)
  and +state = 'leased' -- the plus keeps the index over states out of it
