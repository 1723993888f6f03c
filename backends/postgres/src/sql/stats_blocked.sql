-- How many jobs of each queue wait for others, from their index alone.
select queue, count(*)
from leasehold.jobs
where state = 'waiting' and held
group by queue
