-- Adds a wait. ?1 to ?5: the columns in their order.
insert into leasehold_waits (job_id, parent_id, on_failure, open, outcome)
values (?1, ?2, ?3, ?4, ?5)
