-- A claim from one queue that is a transaction by itself. It takes rows as claim.sql does, or none where the
-- store or the queue has a limit, the queue has jobs of partitions, expired rows are to be taken back first, or a row
-- it met needs more than this. The first columns tell: the time, the epoch, whether it was done so.
-- What the statement itself decides of a row is not told.
-- Differs: SQLite's calls share one transaction.
-- $1 queue, $2 the time in tests, else null, $3 limit, $4 claim, $5 worker, $6 the lease asked for, $7 the lease of
-- queues that name none, $8 lifecycles whose claims write nothing else.
with recursive facts as materialized (
  select m.now, s.epoch::bigint as epoch, coalesce($6, q.lease_ms, $7) as lease_ms,
    s.max_leased is null and q.max_leased is null and not q.paused
      and (
        select true
        from leasehold.jobs
        where state = 'waiting' and not held and partition is not null and queue = $1
        order by partition, priority desc, run_at, id -- so that every plan takes the index with this order
        limit 1
      ) is null
      and (
        select true
        from leasehold.jobs
        where state = 'leased' and partition is not null and queue = $1
        order by partition
        limit 1
      ) is null as may
  from leasehold.store s
    cross join (select coalesce($2, clock_timestamp()) as now) m
    left join leasehold.queues q on q.name = $1
  where s.id = 1
), marks as (
  (
    select priority, run_at
    from leasehold.low_water
    where queue = $1 and (select may from facts)
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
  select coalesce(array_agg(due.id), '{}') as ids, coalesce(bool_and(due.plain), true) as plain
  from (
      select due.id, due.plain
      from marks m
        cross join lateral (
          select j.id, not j.log and j.stage = 0 and j.lifecycle || ' ' || j.revision = any($8) as plain
          from leasehold.jobs j
          where j.state = 'waiting' and not j.held and j.partition is null and j.queue = $1
            and j.priority = m.priority and j.run_at >= m.run_at
            and j.run_at <= (select now from facts)
          order by j.run_at, j.id
          limit $3
          for no key update skip locked
        ) due
      limit $3
    ) due
), told as materialized (
  select f.now, f.epoch, f.lease_ms, p.ids,
    f.may and p.plain and (cardinality(p.ids) >= $3 or not exists (
      select 1
      from leasehold.jobs
      where state = 'leased' and queue = $1 and lease_expires_at <= (select now from facts)
      for no key update skip locked
    )) as done
  from facts f
    cross join picked p
), taken as (
  update leasehold.jobs
  set state = 'leased', claim_version = claim_version + 1, claim_id = $4, last_verdict = null,
    worker_id = $5,
    lease_expires_at = (select leasehold.later(now, lease_ms * 1000) from told),
    heartbeat_at = (select now from told), lease_ms = (select lease_ms from told), step = 0,
    attempts = attempts + 1, executions = executions + 1,
    updated_at = greatest(updated_at, (select now from told)), started_at = (select now from told)
  where id = any((select ids from told where done)::uuid[])
    -- Said so that no plan reads the claim index instead of the ids.
    and state is not distinct from 'waiting' and not held
  returning id, kind, lifecycle, revision, priority, run_at, attempts, attempts_max, executions,
    claim_version, lease_expires_at, created_at, payload, subject, subject_version, traceparent,
    case when claim_version > 1 or again then (
      select checkpoint from leasehold.outcomes where job_id = jobs.id
    ) end as checkpoint
)
select t.now, t.epoch, coalesce(t.done, false), taken.id is not null, taken.*
from told t
  left join taken on true
