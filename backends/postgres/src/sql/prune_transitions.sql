-- Lets go of pruned jobs' transitions, which nothing changes. $1 jobs.
delete from leasehold.transitions
where ctid = any(array(
  select t.ctid
  from unnest($1::uuid[]) as pruned (id)
    cross join lateral (
      select ctid
      from leasehold.transitions
      where job_id = pruned.id
      -- Keeps one walk of the index for each job.
      offset 0
    ) t
))
