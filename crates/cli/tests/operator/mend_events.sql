update leasehold_events set payload = '1' where payload = '{"broken';
