-- Notes the jobs in whose place new ones run. $1 the new jobs, $2 the old ones.
update leasehold.jobs job
set replay_of = v.replay_of
from unnest($1::uuid[], $2::uuid[]) as v (id, replay_of)
where job.id = v.id and job.id = any($1)
