-- Sets the store's clock, back too. ?1 now.
update leasehold_clock
set now_us = ?1, resets = resets + 1
where id = 1
