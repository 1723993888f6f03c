-- Raises a queue's low-water marks to the first row that is still waiting, or to now where there is
-- none; only under the exclusive lock. With very many priorities the empty ones are let go.
-- $1 queue, $2 the time in tests, else null.
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
), moved as materialized (
  select m.priority, first.run_at as low, coalesce($2, clock_timestamp()) as now
  from marks m
    left join lateral (
      select j.run_at
      from leasehold.jobs j
      where j.state = 'waiting' and not j.held and j.partition is null and j.queue = $1
        and j.priority = m.priority
        and j.run_at >= m.run_at
      order by j.run_at, j.id
      limit 1
    ) first on true
  where coalesce(first.run_at, $2, clock_timestamp()) > m.run_at
), gone as (
  delete from leasehold.low_water low
  using moved
  where low.queue = $1 and low.priority = moved.priority
)
insert into leasehold.low_water (queue, priority, run_at)
select $1, priority, coalesce(low, now)
from moved
where low is not null or (select count(*) from marks) <= 32
