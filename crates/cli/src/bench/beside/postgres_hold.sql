-- Begins a read that nobody ends: no dead row younger than it can be removed.
begin isolation level repeatable read;
select count(*) from (select 1 from leasehold.jobs limit 1) as one;
