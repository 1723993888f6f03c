-- What exists under an event's id. ?1 event.
select topic, payload, sequence
from leasehold_events
where id = ?1
