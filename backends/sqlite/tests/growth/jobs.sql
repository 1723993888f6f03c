-- A grown database: ROWS jobs each of what waits, what has ended, and what is not yet due; and, of a thousand
-- partitions, as many that wait, and that are not yet due. Rows that a verb is to find (expired leases) are
-- as many at every size.
create temp table n as
  with recursive n(i) as (select 1 union all select i + 1 from n where i < ROWS * 3)
  select i from n;
insert into leasehold_queues
select name, 0, null, null, null, 86400, 86400, 86400, 1, null, null, null
from (select 'default' as name union all select 'mail' union all select 'print' union all select 'shared');
insert into leasehold_jobs
select cast(printf('%016d', i) as blob),
  case i % 8 when 0 then 'mail' when 1 then 'print' else 'default' end,
  case i % 5 when 0 then 'render' else 'resize' end, 'standard', 1,
  case
    when i % 3 <> 1 then 'waiting'
    when i <= 90 then 'leased'
    when i % 97 = 0 then 'failed'
    when i % 89 = 0 then 'dead_letter'
    when i % 83 = 0 then 'cancelled'
    else 'succeeded'
  end,
  0, i % 4, iif(i % 3 = 2, 4000000000000000, 1000 + i % 1000), 0, 0, 0, 0, 20, 0, 0, null, null, null,
  null, null, null, 0, 0, 0, 0, i, i, null,
  iif(i % 3 = 1 and i > 90, iif(i <= 600, 5, 3999999999999999), null),
  '{}', zeroblob(32), '', null,
  iif(i % 1000 = 0, 'invoice ' || i, null), iif(i % 1000 = 0, 1, null), null, null, null
from n
where not (i % 3 = 1 and i <= 90);
insert into leasehold_jobs
select cast(printf('%016d', i) as blob), iif(i % 2, 'default', 'print'), 'resize', 'standard', 1, 'leased',
  0, 0, 1, 0, 0, 0, 1, 20, 1, 1, zeroblob(16), null, zeroblob(16), 2, 1, 30000, 0, 0, 0, 0, i, i, i, null,
  '{}', zeroblob(32), '', null,
  iif(i % 1000 = 0, 'invoice ' || i, null), iif(i % 1000 = 0, 1, null), null, null, null
from n
where i % 3 = 1 and i <= 90;
insert into leasehold_jobs
select cast(printf('P%015d', i) as blob), 'shared', 'resize', 'standard', 1, 'waiting', 0,
  iif(i % 2, 5, i % 4), iif(i % 2, 4000000000000000, 1000), 0, 0, 0, 0, 20, 0, 0, null, null, null, null,
  null, null, 0, 0, 0, 0, 1, 1, null, null, '{}', zeroblob(32), '', null, null, null, null,
  'tenant ' || (i / 2 % 1000), null
from n
where i <= ROWS * 2;
insert into leasehold_payloads
select cast(printf('%016d', i) as blob), '{}'
from n;
