-- The store's clock as last kept, and how often it was reset.
-- Differs: PostgreSQL asks the server.
select now_us, resets
from leasehold_clock
where id = 1
