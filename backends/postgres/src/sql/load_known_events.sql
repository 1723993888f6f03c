-- What exists under the ids of events. $1 events.
select id, topic, payload, sequence
from leasehold.events
where id = any($1)
