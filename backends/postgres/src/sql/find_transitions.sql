-- A page of a job's transitions in their order. $1 job, $2 the number to begin after, $3 limit.
select job_id, sequence, at, verb, from_status, to_status, claim_version, worker_id, actor
from leasehold.transitions
where job_id = $1 and sequence > $2
order by sequence
limit $3
