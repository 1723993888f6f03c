-- What surrounds the jobs, in proportion: events, keys, tombstones, records, dead letters. Rows that
-- may be pruned are as many at every size.
insert into leasehold_events
select cast(printf('%016d', i) as blob), iif(i % 7 = 0, 'chat', 'mail'), 'none', null, null, '{}', null,
  iif(i % 3 = 1, 'waiting', iif(i % 101 = 0, 'dead_letter', 'delivered')),
  0, 1000 + i % 1000, 0, 20, 0, null, null, null, null, null, null, null, i, i,
  iif(i % 3 = 1, null, iif(i <= 600, 5, 3999999999999999))
from n
where i % 2 = 0;
insert into leasehold_keys
select '', 'key ' || i, cast(printf('%016d', i) as blob), zeroblob(32),
  iif(i <= 600, 5, 3999999999999999)
from n
where i % 3 = 0;
insert into leasehold_tombstones
select cast(printf('t%015d', i) as blob), '', null, 'default', null, null, zeroblob(32), 'succeeded', 1,
  zeroblob(16), 'succeed', iif(i <= 600, 5, 3999999999999999)
from n
where i % 3 = 0;
insert into leasehold_records
select '', 'record ' || i, zeroblob(32), '{}', i, iif(i <= 600, 5, 3999999999999999)
from n
where i % 3 = 0;
insert into leasehold_dead_letters
select id, claim_version, queue, kind, 'running', 'GONE', '{}', 20, 1, 2, 'open', null, null, null, null
from leasehold_jobs
where state = 'dead_letter';
