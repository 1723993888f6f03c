-- Whether no earlier event of the same key is still to go. ?1 event.
select not exists (
  select 1
  from leasehold_events e
    join leasehold_events earlier indexed by leasehold_events_undelivered -- not the delivered ones
      on earlier.ordering = e.ordering and earlier.order_key = e.order_key
      and earlier.sequence < e.sequence
  where e.id = ?1 and e.ordered = 1
    and earlier.ordered = 1 and earlier.state in ('waiting', 'leased')
)
