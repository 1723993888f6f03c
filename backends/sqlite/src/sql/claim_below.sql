-- The first claimable row below a priority in a partition, due or not.
-- ?1 queue, ?2 partition, ?3 priority to stay below.
select priority, run_at, id
from leasehold_jobs
where state = 'waiting' and held = 0 and queue = ?1 and partition = ?2 and priority < ?3
order by priority desc, run_at, id
limit 1
