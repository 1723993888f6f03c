-- Notes the job in whose place a new one runs. ?1 the new job, ?2 the old one.
update leasehold_jobs
set replay_of = ?2
where id = ?1
