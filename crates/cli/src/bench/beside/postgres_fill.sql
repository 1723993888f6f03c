-- Adds jobs to a queue, as enqueue (and for ended ones claim and settle) would have left them.
-- $1 queue, $2 state, $3 seconds until due, $4 first number, $5 rows,
-- $6 first half of the ids.
with numbers as (
  select i, ($6::text || '8' || lpad(to_hex(i), 15, '0'))::uuid as id, $2::text = 'succeeded' as ended
  from generate_series($4::bigint, $4 + $5::bigint - 1) as i
), marks as (
  insert into leasehold.low_water (queue, priority, run_at)
  select $1, 0, now() + make_interval(secs => $3)
  where $2 = 'waiting'
)
insert into leasehold.jobs (id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held,
  again, log, attempts, attempts_max, executions, claim_version, claim_id, last_verdict, step,
  cancel_requested, transition_seq, event_seq, created_at, updated_at, started_at, finished_at, payload,
  hash, scope)
select id, $1, 'bench', 'standard', 1, $2, 0, 0, now() + make_interval(secs => $3) + i * interval '1 us',
  false, false, false, ended::int, 5, ended::int, ended::int, case when ended then id end,
  case when ended then 'succeed' end, 0, false, 0, 0, now(), now(), case when ended then now() end,
  case when ended then now() end,
  format('{"number":%s,"account":"acct_%s","action":"thumbnail.render","source":"s3://uploads/%s/original.jpeg","widths":[160,320,640,1280],"quality":82,"trim":false,"note":"as asked by the owner"}',
    i, lpad(i::text, 12, '0'), lpad(to_hex(i), 16, '0')),
  decode(repeat('00', 32), 'hex'), ''
from numbers
