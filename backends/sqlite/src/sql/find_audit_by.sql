-- A page of the audit log by one actor, by id. ?1 the id to begin after, ?2 actor, ?3 action, ?4 target;
-- null fits all but the actor; ?5 limit.
select id, at, actor, action, target, detail
from leasehold_audit
where actor = ?2 and id > ?1
  and (?3 is null or action = ?3) and (?4 is null or target = ?4)
order by id
limit ?5
