-- Keeps an operator act. ?1 id, ?2 at, ?3 actor, ?4 action, ?5 target, ?6 detail.
insert into leasehold_audit (id, at, actor, action, target, detail)
values (?1, ?2, ?3, ?4, ?5, ?6)
