-- A page of the ids of jobs at one place of the index. ?1 state, ?2 queue, ?3 kind, ?4 the id to begin
-- after, ?5 limit.
-- Differs: PostgreSQL's planner puts the places together by itself.
select id
from leasehold_jobs
where state = ?1 and queue = ?2 and kind = ?3 and id > ?4
order by id
limit ?5
