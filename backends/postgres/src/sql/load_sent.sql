-- The dead letters that jobs replay, of those that have succeeded and have sent all their events, locked.
-- $1 jobs, in order.
-- Differs: SQLite is asked for one job at a time.
select letter.*
from unnest($1::uuid[]) as wanted (id)
  cross join lateral (
    select job_id, claim_version, queue, kind, stage, error_class, failure, attempts, last_failure_at, state,
      replay_job, changed_at, changed_by, note
    from leasehold.dead_letters
    where replay_job = wanted.id and state = 'replaying'
    offset 0
    for no key update
  ) letter
where (select state from leasehold.jobs where id = wanted.id limit 1) = 'succeeded'
  and (
    select sequence
    from leasehold.events
    where ordering = 'job' and order_key = wanted.id::text and order_key is not null
      and state <> 'delivered'
    limit 1
  ) is null
