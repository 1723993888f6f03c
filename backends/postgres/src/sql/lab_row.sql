-- A row of the caller's own. $1 text.
insert into leasehold.lab_rows (text)
values ($1)
