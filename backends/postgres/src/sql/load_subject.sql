-- What is known of a subject: its mark, its jobs of a version, and one of its highest version; of jobs
-- that are gone their tombstones. The mark alone has no state. $1 subject, $2 version.
select version, job_id, null::text as state, null::text as result
from leasehold.subjects
where name = $1
union all
select j.subject_version, j.id, j.state,
  (select o.result from leasehold.outcomes o where o.job_id = j.id)
from leasehold.jobs j
where j.subject = $1 and j.subject_version = $2
union all
select subject_version, job_id, outcome, null
from leasehold.tombstones
where subject = $1 and subject_version = $2
union all
select * from (
  select subject_version, id, state, null
  from leasehold.jobs
  where subject = $1 and subject_version > $2
  order by subject_version desc, id desc
  limit 1
) as highest
union all
select * from (
  select subject_version, job_id, outcome, null
  from leasehold.tombstones
  where subject = $1 and subject_version > $2
  order by subject_version desc, job_id desc
  limit 1
) as highest
