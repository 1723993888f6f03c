-- A new event; one of a job goes along in its trace unless it names one. ?1 to ?23: the columns in their
-- order, ?24 its job.
insert into leasehold_events (
  id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
) values (
  ?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, (select traceparent from leasehold_jobs where id = ?24)), ?8, ?9,
  ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23
)
on conflict (id) do nothing
