-- The partition of a queue that had its turn last, '' for none. ?1 queue.
select turn, partition
from leasehold_turns
where queue = ?1
order by turn desc
limit 1
