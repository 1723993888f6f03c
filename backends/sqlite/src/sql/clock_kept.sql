-- The store's clock when a process last kept it, and how long its machine had been up then. Enqueues in SQL
-- move the clock too, but know of no uptime.
-- Differs: PostgreSQL asks the server.
select kept_us, boot, up_us
from leasehold_clock
where id = 1
