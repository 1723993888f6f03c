-- Adds jobs to a queue, as enqueue (and for ended ones claim and settle) would have left them.
with recursive numbers (i) as (
  select :first union all select i + 1 from numbers where i + 1 < :first + :rows
), clock (now) as (
  select cast((julianday('now') - 2440587.5) * 86400000000 as integer)
)
insert into leasehold_jobs (id, queue, kind, lifecycle, revision, state, stage, priority, run_at,
  held, again, log, attempts, attempts_max, executions, claim_version, claim_id, last_verdict,
  step, cancel_requested, transition_seq, event_seq, created_at, updated_at, started_at,
  finished_at, payload, hash, scope)
select unhex(printf('%s8%015x', :prefix, i)), :queue, 'bench', 'standard', 1, :state, 0, 0,
  now + :due_in * 1000000 + i, 0, 0, 0, ended, 5, ended, ended,
  iif(ended, unhex(printf('%032x', i)), null), iif(ended, 'succeed', null), 0, 0, 0, 0,
  now, now, iif(ended, now, null), iif(ended, now, null),
  printf('{"number":%d,"account":"acct_%012d","action":"thumbnail.render","source":"s3://uploads/%016x/original.jpeg","widths":[160,320,640,1280],"quality":82,"trim":false,"note":"as asked by the owner"}', i, i, i),
  zeroblob(32), ''
from numbers, clock, (select :state = 'succeeded' as ended)
