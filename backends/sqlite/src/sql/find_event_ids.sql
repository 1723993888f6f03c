-- A page of the ids of events of one topic at one state. ?1 state, ?2 topic, ?3 the id to begin after,
-- ?4 limit.
-- Differs: as in find_ids.sql.
select id
from leasehold_events
where state = ?1 and topic = ?2 and id > ?3
order by id
limit ?4
