-- The row that the making of a schema puts there, after all rows were deleted.
insert into leasehold.store (id, epoch)
values (1, 0)
