-- The partitions of a queue that have claimable rows, by name: the first one that is due of each, if any,
-- how many are leased, the largest priority, due or not, and what it may start. One step of the index for
-- each partition.
-- $1 queue, $2 the name to begin after, $3 the name to end at, or null, $4 now, $5 whether to count leases,
-- $6 whether to look at starts, $7 limit.
-- Differs: SQLite looks further down here where the first row is not due yet.
with recursive ring as (
  (
    select partition, priority, run_at, id
    from leasehold.jobs
    where state = 'waiting' and not held and queue = $1 and partition > $2
    order by partition, priority desc, run_at, id
    limit 1
  )
  union all
  select next.*
  from ring r
    cross join lateral (
      select j.partition, j.priority, j.run_at, j.id
      from leasehold.jobs j
      where j.state = 'waiting' and not j.held and j.queue = $1 and j.partition > r.partition
      order by j.partition, j.priority desc, j.run_at, j.id
      limit 1
    ) next
  where $3::text is null or r.partition < $3
)
select r.partition,
  case when r.run_at <= $4 then r.id else (
      with recursive below as (
        select r.priority, r.run_at, r.id
        union all
        select next.priority, next.run_at, next.id
        from below b
          cross join lateral (
            select j.priority, j.run_at, j.id
            from leasehold.jobs j
            where j.state = 'waiting' and not j.held and j.queue = $1
              and j.partition = r.partition and j.priority < b.priority
            order by j.priority desc, j.run_at, j.id
            limit 1
          ) next
        where b.run_at > $4
      )
      select id from below where run_at <= $4 limit 1
    ) end,
  case when $5 then (
      select count(*) from leasehold.jobs
      where state = 'leased' and queue = $1 and partition = r.partition
    ) else 0 end,
  r.priority, s.level, s.at, s.open_at, s.full_at
from (
    select partition, priority, run_at, id
    from ring
    where $3::text is null or partition <= $3
    limit $7
  ) r
  left join lateral (
    select level, at, open_at, full_at from leasehold.starts
    where $6 and queue = $1 and partition = r.partition
    limit 1
  ) s on true
