-- How many events are still to go or given up, and since when the oldest undelivered one waits.
select coalesce(sum(rows) filter (where state = 'waiting'), 0)::bigint,
  coalesce(sum(rows) filter (where state = 'leased'), 0)::bigint,
  coalesce(sum(rows) filter (where state = 'dead_letter'), 0)::bigint,
  min(first)
from (
  select state, count(*) as rows, min(created_at) as first
  from leasehold.events
  where state = 'waiting'
  group by state
  union all
  select state, count(*), min(created_at)
  from leasehold.events
  where state = 'leased'
  group by state
  union all
  select state, count(*), null
  from leasehold.events
  where finished_at is not null and state = 'dead_letter'
  group by state
) parts
