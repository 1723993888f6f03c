-- Marks the latest rerun of a subject. $1 subject, $2 version, $3 job, $4 version before, $5 job before;
-- null: there was none. No row: another transaction came first.
insert into leasehold.subjects as held (name, version, job_id)
values ($1, $2, $3)
on conflict (name) do update
set version = excluded.version, job_id = excluded.job_id
where held.version = $4 and held.job_id = $5
