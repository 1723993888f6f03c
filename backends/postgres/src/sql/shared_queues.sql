-- Which of some queues have claimable or leased rows of partitions. $1 queues.
select q.name
from unnest($1::text[]) as q (name)
  left join lateral (
    select true as found
    from leasehold.jobs
    where state = 'waiting' and not held and partition is not null and queue = q.name
    order by partition, priority desc, run_at, id -- so that every plan takes the index with this order
    limit 1
  ) waiting on true
  left join lateral (
    select true as found
    from leasehold.jobs
    where state = 'leased' and partition is not null and queue = q.name
    order by partition
    limit 1
  ) leased on true
where coalesce(waiting.found, leased.found, false)
