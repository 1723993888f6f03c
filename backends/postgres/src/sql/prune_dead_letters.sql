-- Lets go of pruned jobs' dead letters. $1 jobs.
delete from leasehold.dead_letters
where ctid = any(array(
  select letter.ctid
  from unnest($1::uuid[]) as pruned (id)
    cross join lateral (
      select ctid
      from leasehold.dead_letters
      where job_id = pruned.id
      order by claim_version
      for update
    ) letter
))
