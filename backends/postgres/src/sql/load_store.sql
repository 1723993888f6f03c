-- The epoch, the limit over all queues, the time, and what tells one set of registered lifecycles from
-- another. $1 the time in tests, else null.
select epoch::bigint, max_leased, coalesce($1, clock_timestamp()), (
    select coalesce(string_agg(concat_ws(' ', name, revision, encode(hash, 'hex')), ','), '')
    from leasehold.lifecycles
  )
from leasehold.store
where id = 1
