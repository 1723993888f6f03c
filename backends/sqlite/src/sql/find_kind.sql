-- The next kind that a queue has at a state. ?1 state, ?2 queue, ?3 the kind to begin after.
-- Differs: as in find_ids.sql.
select kind
from leasehold_jobs
where state = ?1 and queue = ?2 and kind > ?3
order by kind
limit 1
