update leasehold_jobs set payload = '1' where payload = '{"broken';
update leasehold_jobs set kind = 'print' where kind = '';
