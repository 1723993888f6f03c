-- Writes back where dead letters stand. $1 jobs, $2 versions, $3 states, $4 the jobs that replay them,
-- $5 when, $6 who, $7 notes.
update leasehold.dead_letters letter
set state = v.state, replay_job = v.replay_job, changed_at = v.changed_at, changed_by = v.changed_by,
  note = v.note
from unnest($1::uuid[], $2::bigint[], $3::text[], $4::uuid[], $5::timestamptz[], $6::text[], $7::text[])
  as v (job_id, claim_version, state, replay_job, changed_at, changed_by, note)
where letter.job_id = v.job_id and letter.claim_version = v.claim_version
