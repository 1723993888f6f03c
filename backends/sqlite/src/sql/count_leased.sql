-- How many leases of a queue run. ?1 queue, ?2 now.
select count(*)
from leasehold_jobs
where state = 'leased' and queue = ?1 and lease_expires_at > ?2
