-- Whether a job has events of its own which have not gone out. ?1 job, as text.
-- Differs: PostgreSQL is asked for many jobs at once.
select exists (
  select 1
  from leasehold_events
  where ordering = 'job' and order_key = ?1 and order_key is not null and state <> 'delivered'
)
