update leasehold_events set payload = '{"broken' where payload = '1';
update leasehold_events set last_verdict = 'lost' where payload = '4';
