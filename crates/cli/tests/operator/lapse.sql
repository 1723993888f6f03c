update leasehold_jobs set lease_expires_at = heartbeat_at;
