-- Ends leased jobs of one claim in one way, where their rows are as the fence has them, judged under their locks
-- and at the time after the last of them, and nobody waits for their end. A row that has changed since
-- this statement began is left out, and so is one whose end writes more than its own row. Which jobs ended.
-- Differs: SQLite's calls share one transaction.
-- $1 jobs, in order, $2 claim, $3 version, $4 worker, $5 epoch, $6 the time in tests, else null, $7 lifecycles
-- whose jobs end so and write nothing else, $8 state, $9 verdict, $10 whether it is a transaction by itself; else
-- it does nothing where the begin before it failed.
with locked as materialized (
  select id, ctid as place, claim_id, claim_version, worker_id, state, lease_expires_at, updated_at,
    not log and not again and stage = 0 and lifecycle || ' ' || revision = any($7) as plain
  from leasehold.jobs
  where id = any($1)
  order by id
  for no key update
), moment as materialized (
  select coalesce($6, clock_timestamp()) as now, count(*) as jobs
  from locked
), owned as materialized (
  select array_agg(l.place) as places
  from locked l
    cross join moment m
  where l.claim_id = $2 and l.claim_version = $3 and l.worker_id = $4 and l.state = 'leased'
    and l.lease_expires_at > m.now and l.updated_at <= m.now and l.plain
    and (select epoch from leasehold.store where id = 1) = $5
    and ($10 or current_setting('leasehold_own.at_once', true) = 'on')
    and (
      select w.open from leasehold.waits w where w.parent_id = l.id and w.open limit 1
    ) is null
)
update leasehold.jobs
set state = $8, last_verdict = $9, worker_id = null, lease_expires_at = null, heartbeat_at = null,
  lease_ms = null, updated_at = (select now from moment), finished_at = (select now from moment)
where ctid = any((select places from owned)::tid[])
returning id
