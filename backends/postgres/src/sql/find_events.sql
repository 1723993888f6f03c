-- A page of events by id. $1 the id to begin after, $2 an id, $3 topic, $4 state, $5 and $6 what they
-- are ordered by; null fits all; $7 limit. A page has no more than 1,000 rows, and saying so keeps
-- every plan on the index of ids.
select id, topic, ordering, order_key, sequence, payload, traceparent, state, ordered, run_at,
  attempts, attempts_max, claim_version, claim_id, last_verdict, worker_id, lease_expires_at,
  heartbeat_at, lease_ms, failure, created_at, updated_at, finished_at
from (
    select *
    from leasehold.events
    where id > $1 and ($2::uuid is null or id = $2)
      and ($3::text is null or topic = $3) and ($4::text is null or state = $4)
      and ($5::text is null or (ordering = $5 and order_key is not distinct from $6))
    order by id
    limit 1001
  ) page
order by id
limit $7
