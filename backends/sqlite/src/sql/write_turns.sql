-- Stores a turn in place of its queue's earlier one. ?1 queue, ?2 turn, ?3 partition.
-- Differs: PostgreSQL makes a row anew, so that dead ones lie behind it.
insert into leasehold_turns (queue, turn, partition)
values (?1, ?2, ?3)
on conflict (queue) do update
set turn = excluded.turn, partition = excluded.partition
