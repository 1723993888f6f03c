-- Which of some events have no earlier one of the same key still to go. $1 events.
select e.id
from leasehold.events e
where e.id = any($1) and (not e.ordered or not exists (
    select 1
    from leasehold.events earlier
    where earlier.ordered and earlier.state in ('waiting', 'leased')
      and earlier.ordering = e.ordering and earlier.order_key = e.order_key
      and earlier.sequence < e.sequence
  ))
