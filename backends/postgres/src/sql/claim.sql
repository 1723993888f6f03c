-- Claims due rows of a queue that are of no partition, in the claim order: one range of the index for
-- each priority, from its low-water mark on.
-- $1 queue, $2 now, $3 limit, $4 claim, $5 worker, $6 when the lease ends, $7 its length,
-- $8 jobs this transaction has reclaimed (their version is raised already), $9 whether to claim even
-- when fewer than the limit are due and the queue has expired rows that would come before some.
-- Differs: SQLite reads candidates here and writes them afterwards.
with recursive marks as (
  (
    select priority, run_at
    from leasehold.low_water
    where queue = $1
    order by priority desc, run_at
    limit 1
  )
  union all
  select next.priority, next.run_at
  from marks m
    cross join lateral (
      select low.priority, low.run_at
      from leasehold.low_water low
      where low.queue = $1 and low.priority < m.priority
      order by low.priority desc, low.run_at
      limit 1
    ) next
), picked as materialized (
  select array(
    select due.id
    from marks m
      cross join lateral (
        select j.id
        from leasehold.jobs j
        where j.state = 'waiting' and not j.held and j.partition is null and j.queue = $1
          and j.priority = m.priority and j.run_at >= m.run_at and j.run_at <= $2
        order by j.run_at, j.id
        limit $3
        for no key update skip locked
      ) due
    limit $3
  ) as ids
)
update leasehold.jobs
set state = 'leased', claim_version = claim_version + case when id = any($8) then 0 else 1 end,
  claim_id = $4, last_verdict = null, worker_id = $5, lease_expires_at = $6, heartbeat_at = $2,
  lease_ms = $7, step = 0, attempts = attempts + 1, executions = executions + 1,
  updated_at = greatest(updated_at, $2), started_at = $2
where id = any((select ids from picked)::uuid[])
  -- Said so that no plan reads the claim index instead of the ids.
  and state is not distinct from 'waiting' and not held
  and ($9 or (select cardinality(ids) from picked) >= $3 or not exists (
    select 1
    from leasehold.jobs
    where state = 'leased' and queue = $1 and lease_expires_at <= $2
    for no key update skip locked
  ))
returning id, kind, lifecycle, revision, stage, priority, run_at, again, log, attempts, attempts_max,
  executions, claim_version, cancel_requested, transition_seq, event_seq, created_at, updated_at,
  partition, payload, subject, subject_version, traceparent
