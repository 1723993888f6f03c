-- Writes a queue's settings. $1 name, $2 paused, $3 limit, $4 lease, $5 log, $6 to $8 how long ended
-- jobs stay, $9 to $11 the limit, the rate and the burst of its partitions.
update leasehold.queues
set paused = $2, max_leased = $3, lease_ms = $4, log = $5, keep_succeeded_s = $6,
  keep_failed_s = $7, keep_dead_s = $8, partition_limit = $9, partition_rate = $10,
  partition_burst = $11
where name = $1
