-- What is due and not yet due in each queue, from the claim indexes alone. $1 now.
select queue, sum(due)::bigint, sum(later)::bigint, min(first)
from (
    select queue, count(*) filter (where run_at <= $1) as due,
      count(*) filter (where run_at > $1) as later, min(run_at) as first
    from leasehold.jobs
    where state = 'waiting' and not held and partition is null
    group by queue
    union all
    select queue, count(*) filter (where run_at <= $1), count(*) filter (where run_at > $1),
      min(run_at)
    from leasehold.jobs
    where state = 'waiting' and not held and partition is not null
    group by queue
  ) both_kinds
group by queue
