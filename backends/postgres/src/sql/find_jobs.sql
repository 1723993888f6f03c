-- A page of jobs by id. $1 the id to begin after, $2 queue, $3 state, $4 kind, $5 subject; null fits
-- all; $6 limit. A page has no more than 1,000 rows, and saying so keeps every plan on the index of ids.
-- Of a subject find_jobs_about.sql tells.
select j.id, j.queue, j.kind, j.lifecycle, j.revision, j.state, j.stage, j.priority, j.run_at, j.held,
  j.again, j.log, j.attempts, j.attempts_max, j.executions, j.claim_version, j.claim_id,
  j.last_verdict, j.worker_id, j.lease_expires_at, j.heartbeat_at, j.lease_ms, j.step,
  j.cancel_requested, j.transition_seq, j.event_seq, j.created_at, j.updated_at, j.started_at,
  j.finished_at, j.partition,
  j.payload, j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  o.checkpoint, o.result, o.failure, j.replay_of
from (
    select *
    from leasehold.jobs
    where id > $1
      and ($2::text is null or queue = $2) and ($3::text is null or state = $3)
      and ($4::text is null or kind = $4) and ($5::text is null or subject = $5)
      and ($7::text is null or partition = $7)
    order by id
    limit 1001
  ) j
  left join lateral (
    select checkpoint, result, failure
    from leasehold.outcomes
    where job_id = j.id
    limit 1
  ) o on true
order by j.id
limit $6
