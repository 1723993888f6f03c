-- How many leases of all queues are held, counted as in count_leased.sql. $1 now.
select (
    select count(*) from leasehold.jobs where state = 'leased'
  ) - (
    select count(*)
    from (
      select 1
      from leasehold.jobs
      where state = 'leased' and lease_expires_at <= $1
      order by id
      for no key update skip locked
    ) free
  )
