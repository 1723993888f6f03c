update leasehold_queues set name = '' where name = 'a';
