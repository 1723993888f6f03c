select count(*) from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))
