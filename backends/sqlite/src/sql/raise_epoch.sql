-- Lifts the epoch to a number below which no fence lives. ?1 the number.
update leasehold_store set epoch = ?1 where epoch < ?1
