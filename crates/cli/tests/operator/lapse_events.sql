update leasehold_events set lease_expires_at = heartbeat_at;
update leasehold_events set failure = '{"broken' where payload = '5';
