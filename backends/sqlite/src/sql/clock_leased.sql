-- Whether any lease runs that a step of the clock would cut short. ?1 now.
select exists (
    select 1 from leasehold_jobs where state = 'leased' and lease_expires_at > ?1
  ) or exists (
    select 1 from leasehold_events where state = 'leased' and lease_expires_at > ?1
  )
