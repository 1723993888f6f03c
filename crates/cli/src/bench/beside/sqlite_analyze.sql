-- Lets the planner know of the crowd, cheaply.
pragma analysis_limit = 1000;
analyze leasehold_jobs;
-- What the rows left in the log is in the file before anything is timed.
pragma wal_checkpoint(truncate);
