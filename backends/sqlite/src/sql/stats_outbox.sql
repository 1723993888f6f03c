-- How many events are where, and since when the oldest undelivered one waits.
select coalesce(sum(state = 'waiting'), 0), coalesce(sum(state = 'leased'), 0),
  coalesce(sum(state = 'delivered'), 0), coalesce(sum(state = 'dead_letter'), 0),
  min(case when state in ('waiting', 'leased') then created_at end)
from leasehold_events
