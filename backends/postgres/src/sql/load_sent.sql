-- The dead letters that jobs replay, of those that have succeeded and have sent all their events, locked.
-- $1 jobs.
-- Differs: SQLite is asked for one job at a time.
select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
  replay_job, changed_at, changed_by, note
from leasehold.dead_letters letter
where letter.replay_job = any($1) and letter.state = 'replaying'
  and exists (select 1 from leasehold.jobs where id = letter.replay_job and state = 'succeeded')
  and not exists (
    select 1
    from leasehold.events
    where ordering = 'job' and order_key = letter.replay_job::text and order_key is not null
      and state <> 'delivered'
  )
order by job_id, claim_version
for no key update of letter
