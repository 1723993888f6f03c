-- What is due and not yet due in each queue, from the claim index alone. ?1 now.
select queue, sum(run_at <= ?1), sum(run_at > ?1), min(run_at)
from leasehold_jobs indexed by leasehold_jobs_claimable -- it alone holds every column that is read
where state = 'waiting' and held = 0
group by queue
