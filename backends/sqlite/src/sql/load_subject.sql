-- What is known of a subject: its mark, its jobs of a version, and one of its highest version; of jobs
-- that are gone their tombstones. The mark alone has no state. ?1 subject, ?2 version.
select version, job_id, null as state, null as result
from leasehold_subjects
where name = ?1
union all
select subject_version, id, state,
  (select o.result from leasehold_outcomes o where o.job_id = id)
from leasehold_jobs
where subject = ?1 and subject_version = ?2
union all
select subject_version, job_id, outcome, null
from leasehold_tombstones
where subject = ?1 and subject_version = ?2
union all
select * from (
  select subject_version, id, state, null
  from leasehold_jobs
  where subject = ?1 and subject_version > ?2
  order by subject_version desc, id desc
  limit 1
)
union all
select * from (
  select subject_version, job_id, outcome, null
  from leasehold_tombstones
  where subject = ?1 and subject_version > ?2
  order by subject_version desc, job_id desc
  limit 1
)
