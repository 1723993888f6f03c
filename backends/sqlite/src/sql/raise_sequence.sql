-- Takes the next numbers of a free ordering key. ?1 key, ?2 how many.
insert into leasehold_sequences (key, last)
values (?1, ?2)
on conflict (key) do update
set last = last + excluded.last
returning last
