-- Whether a queue has claimable or leased rows of partitions. ?1 queue.
select exists (
    select 1
    from leasehold_jobs
    where state = 'waiting' and held = 0 and partition is not null and queue = ?1
  ) or exists (
    select 1 from leasehold_jobs where state = 'leased' and partition is not null and queue = ?1
  )
