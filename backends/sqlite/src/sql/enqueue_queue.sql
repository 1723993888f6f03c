-- Makes the queue of a job enqueued in a caller's transaction where it does not exist.
-- ?1 job, ?2 queue, ?3 to ?5 how many seconds succeeded, failed and dead jobs stay.
insert into leasehold_queues (
  name, paused, keep_succeeded_s, keep_failed_s, keep_dead_s, created_at
)
select ?2, 0, ?3, ?4, ?5, now_us
from leasehold_clock
where id = 1 and exists (select 1 from leasehold_jobs where id = ?1 and queue = ?2)
on conflict (name) do nothing
