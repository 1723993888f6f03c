-- What every transaction begins with: the epoch, the limit over all queues, the store's clock as last
-- kept, how often it was reset, and what tells one set of registered lifecycles from another.
-- Differs: PostgreSQL locks what it needs of this, and asks the server for the time.
select s.epoch, s.max_leased, c.now_us, c.resets,
  (select coalesce(group_concat(name || ' ' || revision || ' ' || hex(hash), ','), '')
    from leasehold_lifecycles)
from leasehold_store s
  join leasehold_clock c on c.id = 1
where s.id = 1
