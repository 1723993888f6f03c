-- One queue. ?1 name.
select name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
  created_at, partition_limit, partition_rate, partition_burst
from leasehold_queues
where name = ?1
