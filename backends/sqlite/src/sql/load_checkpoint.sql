-- What an earlier execution left for the next one. ?1 job.
select checkpoint
from leasehold_outcomes
where job_id = ?1
