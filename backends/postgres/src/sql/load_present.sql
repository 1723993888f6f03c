-- Which of some jobs have a row, locked or not. $1 jobs.
select id
from leasehold.jobs
where id = any($1)
