-- Writes back claimed rows that were waiting when the transaction began. ?1 jobs, id after id in one
-- blob, ?2 claim, ?3 worker, ?4 when the lease ends, ?5 now, ?6 its length.
-- Differs: PostgreSQL claims in claim.sql.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
update leasehold_jobs
set state = 'leased', claim_version = claim_version + 1, claim_id = ?2, last_verdict = null,
  worker_id = ?3, lease_expires_at = ?4, heartbeat_at = ?5, lease_ms = ?6, step = 0,
  attempts = attempts + 1, executions = executions + 1, updated_at = max(updated_at, ?5),
  started_at = ?5
where id in (select substr(?1, at + 1, 16) from list)
  and +state = 'waiting' -- the plus keeps the index over states out of it
