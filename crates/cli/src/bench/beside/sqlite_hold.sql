-- Begins a read that nobody ends: the log behind it cannot be reset.
begin;
select count(*) from (select 1 from leasehold_jobs limit 1);
