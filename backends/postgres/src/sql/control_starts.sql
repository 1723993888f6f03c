-- Lets go of what the partitions of a queue have started at another rate. $1 queue.
delete from leasehold.starts
where queue = $1
