-- Writes back where locked dead letters stand. $1 jobs, $2 versions, $3 states, $4 the jobs that replay
-- them, $5 when, $6 who, $7 notes.
with rows as materialized (
  select letter.ctid as at, v.state, v.replay_job, v.changed_at, v.changed_by, v.note
  from unnest(
    $1::uuid[], $2::bigint[], $3::text[], $4::uuid[], $5::timestamptz[], $6::text[], $7::text[]
  ) as v (job_id, claim_version, state, replay_job, changed_at, changed_by, note)
    cross join lateral (
      select ctid
      from leasehold.dead_letters
      where job_id = v.job_id and claim_version = v.claim_version
      -- Keeps one walk of the index for each letter.
      offset 0
    ) letter
)
update leasehold.dead_letters
set state = rows.state, replay_job = rows.replay_job, changed_at = rows.changed_at,
  changed_by = rows.changed_by, note = rows.note
from rows
where dead_letters.ctid = rows.at and dead_letters.ctid = any(array(select at from rows))
