-- What a job was asked for. ?1 job, then the columns in their order.
insert into leasehold_requests (
  job_id, payload, hash, scope, key, subject, subject_version, traceparent
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
