-- How many events are still to go or given up, and since when the oldest undelivered one waits.
select
  (select count(*) from leasehold_events where state = 'waiting'),
  (select count(*) from leasehold_events where state = 'leased'),
  (select count(*) from leasehold_events where state = 'dead_letter'),
  (select min(created_at) from leasehold_events where state in ('waiting', 'leased'))
