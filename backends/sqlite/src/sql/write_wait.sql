-- Writes back what can change of a wait. ?1 job, ?2 parent, ?3 open, ?4 outcome.
update leasehold_waits
set open = ?3, outcome = ?4
where job_id = ?1 and parent_id = ?2
