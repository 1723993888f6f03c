-- Adds low-water marks for rows that become claimable, where none is early enough. A snapshot from
-- before the lock may show a mark that has been raised since, so there they are always added.
-- $1 queues, $2 priorities, $3 the earliest rows.
insert into leasehold.low_water (queue, priority, run_at)
select v.queue, v.priority, v.run_at
from unnest($1::text[], $2::smallint[], $3::timestamptz[]) as v (queue, priority, run_at)
where current_setting('transaction_isolation') <> 'read committed' or not exists (
    select 1
    from leasehold.low_water low
    where low.queue = v.queue and low.priority = v.priority and low.run_at <= v.run_at
  )
