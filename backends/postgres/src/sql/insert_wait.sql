-- Adds waits. $1 to $5: the columns in their order.
insert into leasehold.waits (job_id, parent_id, on_failure, open, outcome)
select *
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[], $5::text[])
