-- What is known of a subject: its mark, its jobs of a version, and one of its highest version; of jobs
-- that are gone their tombstones. $1 subject, $2 version.
select 'mark' as source, version, job_id, null::text as state, null::text as result
from leasehold.subjects
where name = $1
union all
select 'run', r.subject_version, r.job_id,
  (select j.state from leasehold.jobs j where j.id = r.job_id),
  (select o.result from leasehold.outcomes o where o.job_id = r.job_id)
from leasehold.requests r
where r.subject = $1 and r.subject_version = $2
union all
select 'run', subject_version, job_id, outcome, null
from leasehold.tombstones
where subject = $1 and subject_version = $2
union all
select * from (
  select 'run', r.subject_version, r.job_id,
    (select j.state from leasehold.jobs j where j.id = r.job_id), null
  from leasehold.requests r
  where r.subject = $1 and r.subject_version > $2
  order by r.subject_version desc, r.job_id desc
  limit 1
) as highest
union all
select * from (
  select 'run', subject_version, job_id, outcome, null
  from leasehold.tombstones
  where subject = $1 and subject_version > $2
  order by subject_version desc, job_id desc
  limit 1
) as highest
