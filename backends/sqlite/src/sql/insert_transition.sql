-- Logs a transition. ?1 to ?9: the columns in their order.
insert into leasehold_transitions (
  job_id, sequence, at, verb, from_status, to_status, claim_version, worker_id, actor
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
