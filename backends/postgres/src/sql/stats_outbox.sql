-- How many events are where, and since when the oldest undelivered one waits.
select count(*) filter (where state = 'waiting'), count(*) filter (where state = 'leased'),
  count(*) filter (where state = 'delivered'), count(*) filter (where state = 'dead_letter'),
  min(created_at) filter (where state in ('waiting', 'leased'))
from leasehold.events
