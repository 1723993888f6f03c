-- Keeps the store's clock. ?1 now.
update leasehold_clock
set now_us = ?1
where id = 1
