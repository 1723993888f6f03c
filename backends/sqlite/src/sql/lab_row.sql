-- A row of the caller's own. ?1 text.
insert into lab_rows (body)
values (?1)
