-- Ends well those jobs of a claim that still are its own and of which nothing else is to be written. ?1 jobs,
-- id after id in one blob, ?2 now, ?3 claim, ?4 version, ?5 worker, ?6 the lifecycles in
-- which that is so, each a line of its name and revision.
-- Differs: PostgreSQL has locked and read the rows before.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
)
update leasehold_jobs
set state = 'succeeded', last_verdict = 'succeed', worker_id = null, lease_expires_at = null,
  heartbeat_at = null, lease_ms = null, updated_at = ?2, finished_at = ?2
where id in (select substr(?1, at + 1, 16) from list)
  and +state = 'leased' -- the plus keeps the index over states out of it
  and claim_id = ?3 and claim_version = ?4 and worker_id = ?5 and lease_expires_at > ?2
  and updated_at <= ?2 and stage = 0 and log = 0
  and (again = 0 or not exists (
    select 1 from leasehold_dead_letters where replay_job = leasehold_jobs.id and state = 'replaying'
  ))
  and instr(?6, char(10) || lifecycle || ' ' || revision || char(10)) > 0
