-- Ended jobs of a queue and state that have stayed long enough and that nobody waits for, locked where
-- they are free. $1 queue, $2 state, $3 the last end to go, $4 limit.
select id
from leasehold.jobs
where finished_at is not null and queue = $1 and state = $2 and finished_at <= $3
  and id <> all (array(
    select parent_id
    from leasehold.waits
    where open and outcome is not null
  ))
order by finished_at, id
limit $4
for update skip locked
