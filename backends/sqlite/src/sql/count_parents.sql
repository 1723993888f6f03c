-- How many of a job's parents are where. ?1 job.
select state, open, count(*)
from (
  select coalesce((select p.state from leasehold_jobs p where p.id = w.parent_id), w.outcome) as state, w.open
  from leasehold_waits w
  where w.job_id = ?1
) each
group by state, open
