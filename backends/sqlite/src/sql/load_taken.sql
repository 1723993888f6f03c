-- Whether any job or tombstone has an id in a range. ?1 the first id, ?2 the last one.
select exists (select 1 from leasehold_jobs where id between ?1 and ?2)
  or exists (select 1 from leasehold_tombstones where job_id between ?1 and ?2)
