-- Lets the planner know of the crowd, cheaply.
pragma analysis_limit = 1000;
analyze leasehold_jobs;
