-- What is leased in each queue, and how much of it has run out. $1 now.
select queue, count(*), count(*) filter (where lease_expires_at <= $1)
from leasehold.jobs
where state = 'leased'
group by queue
