update leasehold_jobs set payload = '{"broken' where id = (select id from leasehold_jobs order by id limit 1);
update leasehold_jobs set kind = '' where id = (select id from leasehold_jobs order by id desc limit 1);
