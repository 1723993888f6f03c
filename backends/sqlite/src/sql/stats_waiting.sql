-- What is due and not yet due in each queue, from the claim index alone. ?1 now.
select queue, sum(run_at <= ?1), sum(run_at > ?1), min(run_at)
from leasehold_jobs
where state = 'waiting' and held = 0
group by queue
