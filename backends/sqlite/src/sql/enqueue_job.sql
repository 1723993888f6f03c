-- The row of an enqueue in a caller's transaction where that comes to a new job.
-- ?1 job, ?2 hash, ?3 scope, ?4 key, ?5 lifecycle, ?6 the id's time in ms, ?7 how far off that may be,
-- ?8 queue, ?9 kind, ?10 priority, ?11 delay, ?12 the first claim's time, ?13 attempts, ?14 payload where
-- it is short, ?15 subject, ?16 its version, ?17 traceparent, ?18 partition.
insert into leasehold_jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, step, cancel_requested, transition_seq,
  event_seq, created_at, updated_at, payload, hash, scope, key, subject, subject_version, traceparent,
  partition
)
select ?1, ?8, ?9, ?5, l.revision, 'waiting', 0, ?10,
  min(max(coalesce(c.now_us + ?11, ?12, c.now_us), c.now_us), 253402300799999999), 0, 0,
  coalesce(
    (select log from leasehold_queues where name = ?8), json_extract(l.definition, '$.log')
  ),
  0, coalesce(?13, json_extract(l.definition, '$.budget.attempts')), 0, 0, 0, 0, 0, 0,
  c.now_us, c.now_us, ?14, ?2, ?3, ?4, ?15, ?16, ?17, ?18
from leasehold_clock c
  join leasehold_lifecycles l on l.name = ?5
    and l.revision = (select max(revision) from leasehold_lifecycles where name = ?5)
where c.id = 1 and coalesce(abs(c.now_us / 1000 - ?6) <= ?7, 1)
  and not exists (select 1 from leasehold_tombstones where job_id = ?1)
  and (?4 is null or exists (
      select 1
      from leasehold_keys
      where scope = ?3 and key = ?4 and job_id = ?1 and hash = ?2
    ))
on conflict (id) do nothing
