-- Ends leased jobs of one claim in one way, where their rows are as the fence has them, their leases last for
-- another quarter of a second, and nobody has waited for their end. A row that another transaction changes
-- meanwhile is judged anew; one whose end writes more than its own row is left out. Fails where the locks
-- took longer than that quarter. Which jobs ended.
-- Differs: SQLite's calls share one transaction.
-- $1 jobs, in order, $2 claim, $3 version, $4 worker, $5 epoch, $6 the time in tests, else null, $7 lifecycles
-- whose jobs end so and write nothing else, $8 state, $9 verdict, $10 whether it is a transaction by itself; else
-- it does nothing where the begin before it failed.
with moment as materialized (
  select coalesce($6, clock_timestamp()) as now
), ended as (
  update leasehold.jobs
  set state = $8, last_verdict = $9, worker_id = null, lease_expires_at = null,
    heartbeat_at = null, lease_ms = null, updated_at = (select now from moment),
    finished_at = (select now from moment)
  where id = any($1) and claim_id = $2 and claim_version = $3 and worker_id = $4
    -- Said so that no plan reads the index of leased rows instead of the ids.
    and state is not distinct from 'leased'
    and lease_expires_at > (select now from moment) + interval '250 ms'
    and updated_at <= (select now from moment)
    and not log and not again and not waited and stage = 0
    and lifecycle || ' ' || revision = any($7)
    and (select epoch from leasehold.store where id = 1) = $5
    and ($10 or current_setting('leasehold_own.at_once', true) = 'on')
  returning id
)
select coalesce(array_agg(id), '{}'),
  case when $6 is null then
    leasehold.unless_past((select now from moment) + interval '250 ms')
  end
from ended
