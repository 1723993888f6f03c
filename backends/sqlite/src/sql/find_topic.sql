-- The next topic that has events at a state. ?1 state, ?2 the topic to begin after.
-- Differs: as in find_ids.sql.
select topic
from leasehold_events
where state = ?1 and topic > ?2
order by topic
limit 1
