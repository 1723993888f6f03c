-- Those of some jobs that have events of their own which have not gone out. $1 jobs.
-- Differs: SQLite is asked for one job at a time.
select wanted.id
from unnest($1::uuid[]) as wanted (id)
where exists (
  select 1
  from leasehold.events
  where ordering = 'job' and order_key = wanted.id::text and order_key is not null
    and state <> 'delivered'
)
