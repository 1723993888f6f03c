-- What is due and not yet due in each queue, from the claim index alone. $1 now.
select queue, count(*) filter (where run_at <= $1), count(*) filter (where run_at > $1), min(run_at)
from leasehold.jobs
where state = 'waiting' and not held
group by queue
