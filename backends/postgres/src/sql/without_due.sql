-- Whether a queue has a due row that is of no partition. $1 queue, $2 now.
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
)
select due.id
from marks m
  cross join lateral (
    select j.id
    from leasehold.jobs j
    where j.state = 'waiting' and not j.held and j.partition is null and j.queue = $1
      and j.priority = m.priority and j.run_at >= m.run_at and j.run_at <= $2
    order by j.run_at, j.id
    limit 1
  ) due
limit 1
