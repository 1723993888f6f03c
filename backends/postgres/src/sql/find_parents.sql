-- A page of what a job waits for. $1 job, $2 the parent to begin after, $3 limit.
select w.job_id, w.parent_id, w.on_failure, w.open, w.outcome,
  (select j.state from leasehold.jobs j where j.id = w.job_id),
  (select p.state from leasehold.jobs p where p.id = w.parent_id)
from leasehold.waits w
where w.job_id = $1 and w.parent_id > $2
order by w.parent_id
limit $3
