-- Writes back where a dead letter stands. ?1 job, ?2 version, ?3 state, ?4 the job that replays it,
-- ?5 when, ?6 who, ?7 note.
update leasehold_dead_letters
set state = ?3, replay_job = ?4, changed_at = ?5, changed_by = ?6, note = ?7
where job_id = ?1 and claim_version = ?2
