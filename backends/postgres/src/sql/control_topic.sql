-- Says whether a topic keeps order. $1 topic, $2 ordered. No row: it was so already.
insert into leasehold.topics as t (name, ordered)
values ($1, $2)
on conflict (name) do update
set ordered = excluded.ordered
where t.ordered <> excluded.ordered
