-- Makes a queue that does not exist. ?1 to ?9: the columns in their order.
insert into leasehold_queues (
  name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
  created_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
on conflict (name) do nothing
