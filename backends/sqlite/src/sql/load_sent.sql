-- The dead letters that a job replays, once it has succeeded and has sent all its events.
-- ?1 job, ?2 the same as text.
-- Differs: PostgreSQL is asked for many jobs at once.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note
from leasehold_dead_letters
where replay_job = ?1 and state = 'replaying'
  and exists (select 1 from leasehold_jobs where id = ?1 and state = 'succeeded')
  and not exists (
    select 1
    from leasehold_events
    where ordering = 'job' and order_key = ?2 and order_key is not null and state <> 'delivered'
  )
