-- Makes queues that do not exist. $1 to $9: the columns in their order.
insert into leasehold.queues (
  name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
  created_at
)
select *
from unnest(
  $1::text[], $2::boolean[], $3::bigint[], $4::bigint[], $5::boolean[], $6::bigint[], $7::bigint[],
  $8::bigint[], $9::timestamptz[]
)
on conflict (name) do nothing
