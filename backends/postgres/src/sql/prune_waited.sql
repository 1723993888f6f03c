-- Which of some locked jobs others still wait for. $1 jobs.
-- Differs: SQLite sees it when it looks for the jobs.
select id
from unnest($1::uuid[]) as ended (id)
where (select open from leasehold.waits w where w.parent_id = ended.id and w.open limit 1)
