-- Sets the store's clock, back too. ?1 now, ?2 which start of the machine, ?3 its uptime.
update leasehold_clock
set now_us = ?1, kept_us = ?1, boot = ?2, up_us = ?3, resets = resets + 1
where id = 1
