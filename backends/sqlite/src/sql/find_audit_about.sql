-- A page of the audit log about one target, by id. ?1 the id to begin after, ?2 actor, ?3 action; null
-- fits all; ?4 target, ?5 limit.
select id, at, actor, action, target, detail
from leasehold_audit
where target = ?4 and id > ?1
  and (?2 is null or actor = ?2) and (?3 is null or action = ?3)
order by id
limit ?5
