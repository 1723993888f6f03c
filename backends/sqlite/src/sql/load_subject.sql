-- What is known of a subject: its mark, its jobs of a version, and one of its highest version; of jobs
-- that are gone their tombstones. ?1 subject, ?2 version.
select 'mark' as source, version, job_id, null as state, null as result
from leasehold_subjects
where name = ?1
union all
select 'run', r.subject_version, r.job_id,
  (select j.state from leasehold_jobs j where j.id = r.job_id),
  (select o.result from leasehold_outcomes o where o.job_id = r.job_id)
from leasehold_requests r
where r.subject = ?1 and r.subject_version = ?2
union all
select 'run', subject_version, job_id, outcome, null
from leasehold_tombstones
where subject = ?1 and subject_version = ?2
union all
select * from (
  select 'run', r.subject_version, r.job_id,
    (select j.state from leasehold_jobs j where j.id = r.job_id), null
  from leasehold_requests r
  where r.subject = ?1 and r.subject_version > ?2
  order by r.subject_version desc, r.job_id desc
  limit 1
)
union all
select * from (
  select 'run', subject_version, job_id, outcome, null
  from leasehold_tombstones
  where subject = ?1 and subject_version > ?2
  order by subject_version desc, job_id desc
  limit 1
)
