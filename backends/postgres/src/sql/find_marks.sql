-- Adds the marks that rows of a queue lack because something else than this library wrote them.
-- $1 queue.
with recursive priorities as (
  (
    select priority, run_at
    from leasehold.jobs
    where state = 'waiting' and not held and partition is null and queue = $1
    order by priority desc, run_at, id
    limit 1
  )
  union all
  select next.priority, next.run_at
  from priorities p
    cross join lateral (
      select j.priority, j.run_at
      from leasehold.jobs j
      where j.state = 'waiting' and not j.held and j.partition is null and j.queue = $1
        and j.priority < p.priority
      order by j.priority desc, j.run_at, j.id
      limit 1
    ) next
)
insert into leasehold.low_water (queue, priority, run_at)
select $1, p.priority, p.run_at
from priorities p
where not exists (
    select 1
    from leasehold.low_water low
    where low.queue = $1 and low.priority = p.priority and low.run_at <= p.run_at
  )
