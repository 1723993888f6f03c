-- What is due and not yet due in each queue, from the claim indexes alone. ?1 now.
select queue, sum(due), sum(later), min(first)
from (
    select queue, sum(run_at <= ?1) as due, sum(run_at > ?1) as later, min(run_at) as first
    from leasehold_jobs indexed by leasehold_jobs_claimable -- it alone holds every column that is read
    where state = 'waiting' and held = 0 and partition is null
    group by queue
    union all
    select queue, sum(run_at <= ?1), sum(run_at > ?1), min(run_at)
    from leasehold_jobs indexed by leasehold_jobs_in_turn
    where state = 'waiting' and held = 0 and partition is not null
    group by queue
  )
group by queue
