-- A row of the caller's own. ?1 text.
insert into lab_rows (text)
values (?1)
