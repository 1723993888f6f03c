-- Lets go of pruned jobs' waits, which nothing changes. $1 jobs.
delete from leasehold.waits
where ctid = any(array(
  select w.ctid
  from unnest($1::uuid[]) as pruned (id)
    cross join lateral (
      select ctid
      from leasehold.waits
      where job_id = pruned.id
      -- Keeps one walk of the index for each job.
      offset 0
    ) w
))
