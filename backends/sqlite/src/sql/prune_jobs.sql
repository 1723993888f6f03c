-- Ended jobs of a queue and state that have stayed long enough and that nobody waits for. ?1 queue,
-- ?2 state, ?3 the last end to go, ?4 limit.
select id
from leasehold_jobs j
where finished_at is not null and queue = ?1 and state = ?2 and finished_at <= ?3
  and not exists (select 1 from leasehold_waits w where w.parent_id = j.id and w.open = 1)
order by finished_at, id
limit ?4
