-- What an enqueue in a caller's transaction comes to. 32 zero bytes stand for a request that nobody
-- hashed. ?1 job, ?2 hash, ?3 scope, ?4 key, ?5 lifecycle, ?6 the id's time in ms, ?7 how far off that
-- may be.
with known (hash, state) as (
  select hash, state
  from leasehold_jobs
  where id = ?1
  union all
  select hash, outcome
  from leasehold_tombstones
  where job_id = ?1
  limit 1
), held (job_id, hash, state) as (
  select k.job_id, k.hash, j.state
  from leasehold_keys k
    join leasehold_clock c on c.id = 1
    left join leasehold_jobs j on j.id = k.job_id
  where k.scope = ?3 and k.key = ?4 and (k.expires_at is null or k.expires_at > c.now_us)
    and not exists (select 1 from known)
), decided (outcome) as (
  select case
      when not exists (select 1 from leasehold_lifecycles where name = ?5) then 'not_found'
      when (select abs(now_us / 1000 - ?6) > ?7 from leasehold_clock where id = 1) then 'invalid'
      when exists (select 1 from known where hash in (?2, zeroblob(32))) then 'existing'
      when exists (select 1 from known) then 'conflict'
      when exists (select 1 from held where hash not in (?2, zeroblob(32))) then 'conflict'
      when exists (select 1 from held where job_id <> ?1) then 'existing'
      else 'new'
    end
)
select outcome,
  case when outcome in ('existing', 'conflict') then coalesce((select job_id from held), ?1)
    else ?1 end as job,
  case outcome
    when 'new' then 'waiting'
    when 'existing' then coalesce((select state from known), (select state from held))
    when 'conflict' then coalesce((select state from known), (select state from held))
  end as state
from decided
