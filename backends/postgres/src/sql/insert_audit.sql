-- Keeps operator acts. $1 ids, $2 at, $3 actors, $4 actions, $5 targets, $6 details.
insert into leasehold.audit (id, at, actor, action, target, detail)
select *
from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[])
