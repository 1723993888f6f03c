update leasehold_jobs set state = 'waiting', finished_at = null where state in ('succeeded', 'dead_letter', 'failed', 'cancelled');
