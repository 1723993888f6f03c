-- The largest priority below another that has a claimable row of no partition in a
-- queue, due or not.
-- ?1 queue, ?2 priority to stay below.
-- Differs: PostgreSQL walks the priorities inside claim.sql.
select priority
from leasehold_jobs
where state = 'waiting' and held = 0 and partition is null and queue = ?1 and priority < ?2
order by priority desc
limit 1
