delete from leasehold_jobs;
delete from leasehold_store;
