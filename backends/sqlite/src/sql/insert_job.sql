-- A new job. ?1 to ?38: the columns in their order.
insert into leasehold_jobs (
  id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
  attempts, attempts_max, executions, claim_version, claim_id, last_verdict, worker_id,
  lease_expires_at, heartbeat_at, lease_ms, step, cancel_requested, transition_seq, event_seq,
  created_at, updated_at, started_at, finished_at, payload, hash, scope, key, subject,
  subject_version, traceparent, partition
) values (
  ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
  ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38
)
on conflict (id) do nothing
