-- How many jobs of each queue wait for others, from their index alone.
select queue, count(*)
from leasehold_jobs indexed by leasehold_jobs_held -- it alone holds no other job
where state = 'waiting' and held = 1
group by queue
