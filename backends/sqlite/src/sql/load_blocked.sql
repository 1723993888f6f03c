-- Which of some jobs have open waits for others than some. ?1 jobs, ?2 the others, each id after id in
-- one blob.
with recursive list(at) as (
  select 0 where length(?1) > 0 union all select at + 16 from list where at + 16 < length(?1)
), others(at) as (
  select 0 where length(?2) > 0 union all select at + 16 from others where at + 16 < length(?2)
)
select substr(?1, at + 1, 16)
from list
where exists (
  select 1
  from leasehold_waits indexed by leasehold_waits_open -- it alone leaves out the waits that are over
  where job_id = substr(?1, list.at + 1, 16) and open = 1
    and parent_id not in (select substr(?2, at + 1, 16) from others)
)
