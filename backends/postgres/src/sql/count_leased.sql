-- How many leases of a queue are held: all but those that have run out and nobody is renewing now.
-- $1 queue, $2 now.
-- Differs: on SQLite nobody else can be writing.
select (
    select count(*) from leasehold.jobs where state = 'leased' and queue = $1
  ) - (
    select count(*)
    from (
      select 1
      from leasehold.jobs
      where state = 'leased' and queue = $1 and lease_expires_at <= $2
      order by id
      for no key update skip locked
    ) free
  )
