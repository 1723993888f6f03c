-- Registers a lifecycle. ?1 name, ?2 revision, ?3 hash, ?4 definition.
insert into leasehold_lifecycles (name, revision, hash, definition)
values (?1, ?2, ?3, ?4)
