-- Moves the store's clock on for an enqueue in a caller's transaction, which takes the write lock. It
-- follows the machine's clock ahead only while no lease runs that this would cut short.
-- ?1 the time in tests, else null.
update leasehold_clock
set now_us = coalesce(?1, (
    select max(now_us + 1, case when exists (
        select 1 from leasehold_jobs where state = 'leased' and lease_expires_at > now_us
      ) or exists (
        select 1 from leasehold_events where state = 'leased' and lease_expires_at > now_us
      ) then 0 else cast(strftime('%s', 'now') as integer) * 1000000
        + cast(substr(strftime('%f', 'now'), 4) as integer) * 1000 end)
  ))
where id = 1
