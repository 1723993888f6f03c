-- What has ended in each queue, from the index of ended rows alone.
select queue, state, count(*)
from leasehold.jobs
where finished_at is not null
group by queue, state
