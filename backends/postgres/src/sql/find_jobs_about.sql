-- A page of a subject's jobs by id. Parameters as in find_jobs.sql; $5 is never null.
select j.id, j.queue, j.kind, j.lifecycle, j.revision, j.state, j.stage, j.priority, j.run_at, j.held,
  j.again, j.log, j.attempts, j.attempts_max, j.executions, j.claim_version, j.claim_id,
  j.last_verdict, j.worker_id, j.lease_expires_at, j.heartbeat_at, j.lease_ms, j.step,
  j.cancel_requested, j.transition_seq, j.event_seq, j.created_at, j.updated_at, j.started_at,
  j.finished_at, j.partition,
  j.payload, j.hash, j.scope, j.key, j.subject, j.subject_version, j.traceparent,
  o.checkpoint, o.result, o.failure, j.replay_of
from (
    select id
    from leasehold.jobs
    where subject = $5 and id > $1
    order by id
    -- Keeps every plan on the index of subjects, whose order it has.
    offset 0
  ) about
  cross join lateral (
    select id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
      attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
      lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
      created_at, updated_at, started_at, finished_at, partition, payload, hash, scope, key, subject,
      subject_version, traceparent, replay_of
    from leasehold.jobs
    where id = about.id
    limit 1
  ) j
  left join lateral (
    select checkpoint, result, failure
    from leasehold.outcomes
    where job_id = j.id
    limit 1
  ) o on true
where ($2::text is null or j.queue = $2) and ($3::text is null or j.state = $3)
  and ($4::text is null or j.kind = $4) and ($7::text is null or j.partition = $7)
order by about.id
limit $6
