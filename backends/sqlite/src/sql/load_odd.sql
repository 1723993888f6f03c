-- Ids and partitions, as bytes, of rows that a claim or a reclaim may meet: read where one of them met damage and
-- cannot say whose, since it goes through all that wait. ?1 now.
-- Differs: PostgreSQL's columns hold nothing else than ids and texts.
select id, cast(partition as blob)
from leasehold_jobs
where (length(id) <> 16 or partition is not null)
  and ((state = 'waiting' and held = 0) or (state = 'leased' and lease_expires_at <= ?1))
