-- The partitions of a queue that have claimable rows, by name: the first row of each, due or not, how many
-- are leased, and what it may start. One step of the index for each partition.
-- ?1 queue, ?2 the name to begin after, ?3 the name to end at, or null, ?4 whether to count leases,
-- ?5 whether to look at starts, ?6 limit.
-- Differs: PostgreSQL looks further down here where the first row is not due yet.
with recursive ring(partition) as (
  select * from (
    select partition
    from leasehold_jobs
    where state = 'waiting' and held = 0 and queue = ?1 and partition > ?2
    order by partition, priority desc, run_at, id
    limit 1
  )
  union all
  select (
      select j.partition
      from leasehold_jobs j
      where j.state = 'waiting' and j.held = 0 and j.queue = ?1 and j.partition > ring.partition
      order by j.partition, j.priority desc, j.run_at, j.id
      limit 1
    )
  from ring
  where ring.partition is not null and (?3 is null or ring.partition < ?3)
  limit ?6
)
select r.partition, r.priority, r.run_at, r.id,
  iif(?4, (
      select count(*)
      from leasehold_jobs
      where state = 'leased' and queue = ?1 and partition = ring.partition
    ), 0),
  s.level, s.at, s.open_at, s.full_at
from ring
  cross join leasehold_jobs r on r.id = (
      select j.id
      from leasehold_jobs j
      where j.state = 'waiting' and j.held = 0 and j.queue = ?1 and j.partition = ring.partition
      order by j.priority desc, j.run_at, j.id
      limit 1
    )
  left join leasehold_starts s on ?5 and s.queue = ?1 and s.partition = ring.partition
where ?3 is null or ring.partition <= ?3
