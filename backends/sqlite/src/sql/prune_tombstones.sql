-- Lets go of tombstones. ?1 the last pruning to go, ?2 limit.
delete from leasehold_tombstones
where rowid in (
  select rowid
  from leasehold_tombstones
  where pruned_at <= ?1
  order by pruned_at, job_id
  limit ?2
)
