-- Claims due rows of partitions, one after the other, in the claim order within each: one range of the
-- index for each priority; under the lock of the queue's row.
-- $1 queue, $2 now, $3 limit over all, $4 claim, $5 worker, $6 when the lease ends, $7 its length, $8 jobs
-- this transaction has reclaimed (their version is raised already), $9 partitions, $10 the limit of each,
-- $11 the largest priority that each has; what lies below is looked for where that does not give enough.
with picked as materialized (
  select array(
    select due.id
    from unnest($9::text[], $10::bigint[], $11::smallint[]) as asked (partition, most, top)
      cross join lateral (
        select found.id
        from (
            select asked.top as priority
            union all
            (
              with recursive priorities as (
                (
                  select priority
                  from leasehold.jobs
                  where state = 'waiting' and not held and queue = $1
                    and partition = asked.partition and priority < asked.top
                  order by priority desc
                  limit 1
                )
                union all
                select next.priority
                from priorities p
                  cross join lateral (
                    select j.priority
                    from leasehold.jobs j
                    where j.state = 'waiting' and not j.held and j.queue = $1
                      and j.partition = asked.partition and j.priority < p.priority
                    order by j.priority desc
                    limit 1
                  ) next
              )
              select priority from priorities
            )
          ) present
          cross join lateral (
            select j.id
            from leasehold.jobs j
            where j.state = 'waiting' and not j.held and j.queue = $1
              and j.partition = asked.partition and j.priority = present.priority and j.run_at <= $2
            order by j.run_at, j.id
            limit asked.most
            for no key update skip locked
          ) found
        limit asked.most
      ) due
    limit $3
  ) as ids
)
update leasehold.jobs
set state = 'leased', claim_version = claim_version + case when id = any($8) then 0 else 1 end,
  claim_id = $4, last_verdict = null, worker_id = $5, lease_expires_at = $6, heartbeat_at = $2,
  lease_ms = $7, step = 0, attempts = attempts + 1, executions = executions + 1,
  updated_at = greatest(updated_at, $2), started_at = $2
where id = any((select ids from picked)::uuid[])
  -- Said so that no plan reads the claim index instead of the ids.
  and state is not distinct from 'waiting' and not held
returning id, kind, lifecycle, revision, stage, priority, run_at, again, log, attempts, attempts_max,
  executions, claim_version, cancel_requested, transition_seq, event_seq, created_at, updated_at,
  partition, payload, subject, subject_version, traceparent
