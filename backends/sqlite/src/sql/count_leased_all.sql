-- How many leases of all queues run. ?1 now.
select count(*)
from leasehold_jobs
where state = 'leased' and lease_expires_at > ?1
