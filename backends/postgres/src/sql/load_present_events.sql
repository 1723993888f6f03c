-- Which of some events have a row, locked or not. $1 events.
select id
from leasehold.events
where id = any($1)
