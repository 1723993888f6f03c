-- How many delivered events are kept, from the index of ended ones alone.
select count(*)
from leasehold.events
where finished_at is not null and state = 'delivered'
