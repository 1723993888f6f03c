-- The first schema. `leasehold.` is replaced by the configured schema's quoted name.
-- No foreign keys: the tables live beside the user's own, and locks must stay on single rows.

create table leasehold.store (
  id smallint primary key check (id = 1),
  epoch integer not null check (epoch between 0 and 32767),
  max_leased bigint check (max_leased >= 0)
);
insert into leasehold.store (id, epoch) values (1, 0);

create table leasehold.queues (
  name text collate "C" primary key,
  paused boolean not null,
  max_leased bigint check (max_leased >= 0),
  lease_ms bigint check (lease_ms >= 1000),
  log boolean,
  keep_succeeded_s bigint not null,
  keep_failed_s bigint not null,
  keep_dead_s bigint not null,
  created_at timestamptz not null,
  partition_limit bigint check (partition_limit >= 0),
  partition_rate bigint check (partition_rate >= 1),
  partition_burst bigint check (partition_burst >= 1),
  constraint queues_rate_has_burst check ((partition_rate is null) = (partition_burst is null))
);

create table leasehold.topics (
  name text collate "C" primary key,
  ordered boolean not null
);

create table leasehold.lifecycles (
  name text collate "C" not null,
  revision bigint not null check (revision >= 1),
  hash bytea not null check (length(hash) = 32),
  definition text not null,
  primary key (name, revision)
);

create table leasehold.workers (
  id uuid primary key,
  name text not null,
  introduced_at timestamptz not null
);

-- What was asked for stands last, and never changes: a new version of a row on the same page logs only
-- what lies before it. A payload of more than about 1,600 bytes lies in the table's TOAST, where new
-- versions of the row leave it.
create table leasehold.jobs (
  id uuid primary key,
  queue text collate "C" not null,
  kind text collate "C" not null,
  lifecycle text collate "C" not null,
  revision bigint not null,
  state text collate "C" not null
    check (state in ('waiting', 'leased', 'succeeded', 'failed', 'dead_letter', 'cancelled')),
  stage smallint not null check (stage >= 0),
  priority smallint not null,
  run_at timestamptz not null,
  held boolean not null,
  again boolean not null,
  log boolean not null,
  attempts bigint not null check (attempts >= 0),
  attempts_max bigint not null check (attempts_max >= 1),
  executions bigint not null check (executions >= 0),
  claim_version bigint not null check (claim_version >= 0),
  claim_id uuid,
  last_verdict text collate "C",
  worker_id uuid,
  lease_expires_at timestamptz,
  heartbeat_at timestamptz,
  lease_ms bigint,
  step bigint not null check (step >= 0),
  cancel_requested boolean not null,
  transition_seq bigint not null,
  event_seq bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  payload text not null,
  hash bytea not null check (length(hash) = 32),
  scope text collate "C" not null,
  key text collate "C",
  subject text collate "C",
  subject_version bigint,
  traceparent text,
  partition text collate "C",
  replay_of uuid,
  waited boolean not null default false, -- whether any job has ever waited for its end
  constraint jobs_lease_exactly_when_leased check (
    (state = 'leased') = (worker_id is not null)
    and (worker_id is null) = (lease_expires_at is null)
    and (worker_id is null) = (heartbeat_at is null)
    and (worker_id is null) = (lease_ms is null)
    and (worker_id is null or (claim_id is not null and last_verdict is null))
  ),
  constraint jobs_finished_exactly_when_ended check (
    (state in ('waiting', 'leased')) = (finished_at is null)
  ),
  constraint jobs_subject_has_version check ((subject is null) = (subject_version is null))
) with (
  fillfactor = 70,
  toast_tuple_target = 1024,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05
);
-- The claim order within a queue, of the jobs that are of no partition, and within each partition.
create index jobs_claimable on leasehold.jobs (queue, priority desc, run_at, id)
  where state = 'waiting' and not held and partition is null;
create index jobs_in_turn on leasehold.jobs (queue, partition, priority desc, run_at, id)
  where state = 'waiting' and not held and partition is not null;
-- Small: what is leased; expired leases are found by reading it. Holds no column a heartbeat changes.
create index jobs_leased on leasehold.jobs (queue, id) where state = 'leased';
-- How many leases each partition holds.
create index jobs_leased_in on leasehold.jobs (queue, partition)
  where state = 'leased' and partition is not null;
-- What prune looks at.
create index jobs_ended on leasehold.jobs (queue, state, finished_at, id)
  where finished_at is not null;
create index jobs_subject on leasehold.jobs (subject, id) where subject is not null;
-- What waits for other jobs, for the figures.
create index jobs_held on leasehold.jobs (queue) where state = 'waiting' and held;

-- Where the claimable rows of a queue and priority begin: none lies before the earliest of its marks.
-- Claims read from there on, past what is dead but still visible to an old snapshot. Who makes a row
-- claimable adds a mark in the same transaction unless one is early enough, under a shared lock; marks
-- are raised under the exclusive one, when nobody is adding.
create table leasehold.low_water (
  queue text collate "C" not null,
  priority smallint not null,
  run_at timestamptz not null
) with (
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 100,
  autovacuum_vacuum_cost_delay = 0
);
create index low_water_first on leasehold.low_water (queue, priority desc, run_at);

create table leasehold.outcomes (
  job_id uuid primary key,
  checkpoint text,
  result text,
  failure text,
  first_failure_at timestamptz,
  last_failure_at timestamptz
) with (fillfactor = 80);

-- The latest rerun of each subject; outlasts its job.
create table leasehold.subjects (
  name text collate "C" primary key,
  version bigint not null,
  job_id uuid not null
);

create table leasehold.keys (
  scope text collate "C" not null,
  key text collate "C" not null,
  job_id uuid not null,
  hash bytea not null check (length(hash) = 32),
  expires_at timestamptz,
  primary key (scope, key)
);
create index keys_expiring on leasehold.keys (expires_at, scope, key) where expires_at is not null;

create table leasehold.transitions (
  job_id uuid not null,
  sequence bigint not null,
  at timestamptz not null,
  verb text collate "C" not null,
  from_status text not null,
  to_status text not null,
  claim_version bigint not null,
  worker_id uuid,
  actor text,
  primary key (job_id, sequence)
);

create table leasehold.sequences (
  key text collate "C" primary key,
  last bigint not null
);

create table leasehold.events (
  id uuid primary key,
  topic text collate "C" not null,
  ordering text collate "C" not null check (ordering in ('job', 'key', 'none')),
  order_key text collate "C",
  sequence bigint,
  payload text not null,
  traceparent text,
  state text collate "C" not null
    check (state in ('waiting', 'leased', 'delivered', 'dead_letter')),
  ordered boolean not null,
  run_at timestamptz not null,
  attempts bigint not null check (attempts >= 0),
  attempts_max bigint not null check (attempts_max >= 1),
  claim_version bigint not null check (claim_version >= 0),
  claim_id uuid,
  last_verdict text collate "C",
  worker_id uuid,
  lease_expires_at timestamptz,
  heartbeat_at timestamptz,
  lease_ms bigint,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  finished_at timestamptz,
  constraint events_key_exactly_when_ordered check (
    (ordering = 'none') = (order_key is null) and (ordering = 'none') = (sequence is null)
  ),
  constraint events_lease_exactly_when_leased check (
    (state = 'leased') = (worker_id is not null)
    and (worker_id is null) = (lease_expires_at is null)
    and (worker_id is null) = (heartbeat_at is null)
    and (worker_id is null) = (lease_ms is null)
    and (worker_id is null or (claim_id is not null and last_verdict is null))
  ),
  constraint events_finished_exactly_when_ended check (
    (state in ('waiting', 'leased')) = (finished_at is null)
  )
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
create index events_claimable on leasehold.events (run_at, id) where state = 'waiting';
create index events_leased on leasehold.events (id) where state = 'leased';
-- The undelivered events of an ordering key, in order: is an earlier one still to go?
create index events_undelivered on leasehold.events (ordering, order_key, sequence)
  where ordered and state in ('waiting', 'leased');
create unique index events_sequence on leasehold.events (ordering, order_key, sequence)
  where order_key is not null;
create index events_ended on leasehold.events (state, finished_at, id) where finished_at is not null;

create table leasehold.dead_letters (
  job_id uuid not null,
  claim_version bigint not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  stage text not null,
  error_class text collate "C" not null,
  failure text not null,
  attempts bigint not null,
  first_failure_at timestamptz not null,
  last_failure_at timestamptz not null,
  state text collate "C" not null default 'open'
    check (state in ('open', 'replaying', 'superseded', 'resolved', 'escalated')),
  replay_job uuid,
  changed_at timestamptz,
  changed_by text,
  note text,
  primary key (job_id, claim_version)
);
-- What the end of a replaying job decides.
create index dead_letters_replaying on leasehold.dead_letters (replay_job)
  where state = 'replaying';

create table leasehold.tombstones (
  job_id uuid primary key,
  scope text collate "C" not null,
  key text collate "C",
  queue text collate "C" not null,
  subject text collate "C",
  subject_version bigint,
  hash bytea not null check (length(hash) = 32),
  outcome text collate "C" not null,
  claim_version bigint not null,
  claim_id uuid,
  last_verdict text collate "C",
  pruned_at timestamptz not null
);
create index tombstones_pruned on leasehold.tombstones (pruned_at, job_id);
create index tombstones_subject on leasehold.tombstones (subject, subject_version, job_id)
  where subject is not null;

create table leasehold.records (
  scope text collate "C" not null,
  key text collate "C" not null,
  hash bytea not null check (length(hash) = 32),
  response text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (scope, key)
);
create index records_expiring on leasehold.records (expires_at, scope, key);

create table leasehold.audit (
  id uuid primary key,
  at timestamptz not null,
  actor text collate "C" not null,
  action text collate "C" not null,
  target text collate "C" not null,
  detail text
);
create index audit_target on leasehold.audit (target, id);
create index audit_actor on leasehold.audit (actor, id);

create table leasehold.documents (
  namespace text collate "C" not null,
  key text collate "C" not null,
  version bigint not null check (version >= 1),
  body text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  primary key (namespace, key),
  constraint documents_bare_versions_end check (body is not null or expires_at is not null)
) with (fillfactor = 80);
create index documents_expiring on leasehold.documents (expires_at) where expires_at is not null;

create table leasehold.blobs (
  namespace text collate "C" not null,
  key text collate "C" not null,
  bytes bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  primary key (namespace, key)
);
create index blobs_expiring on leasehold.blobs (expires_at) where expires_at is not null;

create table leasehold.tokens (
  bucket text collate "C" primary key,
  level bigint not null check (level >= 0),
  at timestamptz not null,
  full_at timestamptz not null
) with (fillfactor = 50);
create index tokens_full on leasehold.tokens (full_at);

-- What jobs wait for: other jobs. An open wait keeps a waiting job held; it goes with that job.
create table leasehold.waits (
  job_id uuid not null,
  parent_id uuid not null,
  on_failure text collate "C" not null check (on_failure in ('cancel', 'run', 'wait')),
  open boolean not null,
  outcome text collate "C",
  primary key (job_id, parent_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
-- Who waits for a job.
create index waits_parent on leasehold.waits (parent_id, job_id);
-- Whether a job waits for any other.
create index waits_open on leasehold.waits (job_id, parent_id) where open;
-- The ended jobs that somebody still waits for; prune passes over them.
create index waits_pending on leasehold.waits (parent_id) where open and outcome is not null;
-- Which partition of each queue had its turn last, '' for the jobs of none. A new turn is a new row in
-- place of the one before, so that the newest is found at once however many dead ones lie behind it.
create table leasehold.turns (
  queue text collate "C" not null,
  turn bigint not null,
  partition text collate "C" not null,
  primary key (queue, turn)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- What partitions may start at their queue's rate; one without a row, or with a full one, a whole burst.
create table leasehold.starts (
  queue text collate "C" not null,
  partition text collate "C" not null,
  level bigint not null check (level >= 0),
  at timestamptz not null,
  open_at timestamptz not null,
  full_at timestamptz not null,
  primary key (queue, partition)
) with (fillfactor = 50);
create index starts_full on leasehold.starts (full_at);

-- Read views: the stable surface for people and other programs. Tables are private.
create view leasehold.v_jobs as
  select j.id, j.queue, j.kind, j.lifecycle, j.revision, j.state, j.stage, j.priority, j.run_at,
    j.held, j.attempts, j.attempts_max, j.executions, j.claim_version, j.worker_id,
    j.lease_expires_at, j.heartbeat_at, j.cancel_requested, j.scope, j.key, j.subject,
    j.subject_version, j.payload, o.result, o.checkpoint, o.failure, j.created_at, j.updated_at,
    j.started_at, j.finished_at, j.partition, j.replay_of
  from leasehold.jobs j
    left join leasehold.outcomes o on o.job_id = j.id;
create view leasehold.v_events as
  select id, topic, ordering, order_key, sequence, payload, state, attempts, attempts_max, run_at,
    claim_version, failure, created_at, updated_at, finished_at
  from leasehold.events;
create view leasehold.v_dead_letters as select * from leasehold.dead_letters;
create view leasehold.v_waits as
  select w.job_id, j.state as job_state, w.parent_id, coalesce(p.state, w.outcome) as parent_state,
    w.on_failure, w.open
  from leasehold.waits w
    join leasehold.jobs j on j.id = w.job_id
    left join leasehold.jobs p on p.id = w.parent_id;
create view leasehold.v_queues as
  select name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
    partition_limit, partition_rate, partition_burst
  from leasehold.queues;

-- A time later by some microseconds, not beyond the last instant; null when they are.
create function leasehold.later(at timestamptz, us bigint) returns timestamptz
language sql immutable strict
as $$
  select least(
    at + (us / 1000000) * interval '1 second' + (us % 1000000) * interval '1 microsecond',
    timestamptz '9999-12-31 23:59:59.999999+00'
  )
$$;

-- Fails as a transaction to be run again where a time has come.
create function leasehold.unless_past(at timestamptz) returns boolean
language plpgsql
as $$
begin
  if clock_timestamp() >= at then
    raise exception 'leasehold: the locks took too long' using errcode = 'serialization_failure';
  end if;
  return true;
end
$$;

-- An enqueue in the caller's transaction: `new`, `existing`, `conflict`, `not_found` or `invalid`. Only
-- `new` writes. A hash of 32 zero bytes stands for a request that nobody hashed.
create function leasehold.enqueue_job(
  in_lock text, in_job uuid, in_hash bytea, in_scope text, in_key text, in_lifecycle text,
  in_id_ms bigint, in_skew_ms bigint, in_queue text, in_kind text, in_priority bigint,
  in_delay_us bigint, in_run_at_us bigint, in_attempts bigint, in_payload text, in_subject text,
  in_subject_version bigint, in_traceparent text, in_ttl_us bigint, in_keep_succeeded_s bigint,
  in_keep_failed_s bigint, in_keep_dead_s bigint, in_now_us bigint, in_partition text,
  out outcome text, out job uuid, out state text
)
language plpgsql
as $$
#variable_conflict use_column
declare
  zero constant bytea := decode(repeat('00', 32), 'hex');
  run timestamptz;
  now_at timestamptz;
  form record;
  found_job record;
begin
  job := in_job;
  -- First, so that every later statement sees each rise of the low-water marks.
  perform pg_advisory_xact_lock_shared(hashtextextended(in_lock, 0));
  now_at := coalesce(leasehold.later('epoch', in_now_us), clock_timestamp());
  select l.revision, l.definition::json as definition into form
  from leasehold.lifecycles l where l.name = in_lifecycle order by l.revision desc limit 1;
  if not found then
    outcome := 'not_found';
    return;
  end if;
  if abs(floor(extract(epoch from now_at) * 1000) - in_id_ms) > in_skew_ms then
    outcome := 'invalid';
    return;
  end if;
  for attempt in 1..2 loop
    select known.hash, known.state into found_job
    from (
      select j.hash, j.state from leasehold.jobs j where j.id = in_job
      union all
      select t.hash, t.outcome from leasehold.tombstones t where t.job_id = in_job
    ) known
    limit 1;
    if found then
      outcome := case when found_job.hash in (in_hash, zero) then 'existing' else 'conflict' end;
      state := found_job.state;
      return;
    end if;
    if in_key is not null then
      -- A row that the condition refuses is locked all the same, and so still there below.
      insert into leasehold.keys as held (scope, key, job_id, hash, expires_at)
      values (in_scope, in_key, in_job, in_hash, leasehold.later(now_at, in_ttl_us))
      on conflict (scope, key) do update
      set job_id = excluded.job_id, hash = excluded.hash, expires_at = excluded.expires_at
      where held.expires_at <= now_at
        or (held.job_id = excluded.job_id and held.hash = excluded.hash);
      if not found then
        select k.job_id, k.hash, j.state into found_job
        from leasehold.keys k left join leasehold.jobs j on j.id = k.job_id
        where k.scope = in_scope and k.key = in_key;
        outcome := case
            when in_hash = zero or found_job.hash in (in_hash, zero) then 'existing'
            else 'conflict'
          end;
        job := found_job.job_id;
        state := found_job.state;
        return;
      end if;
    end if;
    run := coalesce(
      leasehold.later(now_at, in_delay_us), leasehold.later('epoch', in_run_at_us), now_at
    );
    run := greatest(run, now_at);
    insert into leasehold.jobs (
      id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
      attempts, attempts_max, executions, claim_version, step, cancel_requested, transition_seq,
      event_seq, created_at, updated_at, payload, hash, scope, key, subject, subject_version,
      traceparent, partition
    )
    values (
      in_job, in_queue, in_kind, in_lifecycle, form.revision, 'waiting', 0, in_priority, run, false,
      false,
      coalesce(
        (select q.log from leasehold.queues q where q.name = in_queue),
        (form.definition ->> 'log')::boolean
      ),
      0, coalesce(in_attempts, (form.definition #>> '{budget,attempts}')::bigint), 0, 0, 0, false,
      0, 0, now_at, now_at, in_payload, in_hash, in_scope, in_key, in_subject, in_subject_version,
      in_traceparent, in_partition
    )
    on conflict (id) do nothing;
    exit when found;
    -- The same id came first meanwhile; its job is committed, and the next round sees it.
    delete from leasehold.keys where scope = in_scope and key = in_key and job_id = in_job
      and hash = in_hash;
  end loop;
  insert into leasehold.queues (
    name, paused, keep_succeeded_s, keep_failed_s, keep_dead_s, created_at
  )
  values (in_queue, false, in_keep_succeeded_s, in_keep_failed_s, in_keep_dead_s, now_at)
  on conflict (name) do nothing;
  insert into leasehold.low_water (queue, priority, run_at)
  select in_queue, in_priority, run
  where in_partition is null
    and (current_setting('transaction_isolation') <> 'read committed' or not exists (
      select 1
      from leasehold.low_water low
      where low.queue = in_queue and low.priority = in_priority and low.run_at <= run
    ));
  outcome := 'new';
  state := 'waiting';
end
$$;

-- An enqueue that is a transaction by itself, for the store's own: jobs that are alike but for id and payload,
-- due at once, that name neither key, subject, trace nor partition. Tells whether it did so; it writes
-- nothing where the queue is not there yet, an id is taken, the ids' times do not fit the clock
-- (`in_from` to `in_until`), or a newer revision of the lifecycle is registered.
create function leasehold.put_jobs(
  in_lock text, in_ids uuid[], in_payloads text[], in_hashes bytea[], in_queue text, in_kind text,
  in_lifecycle text, in_revision bigint, in_priority smallint, in_log boolean, in_attempts bigint,
  in_from timestamptz, in_until timestamptz, in_now timestamptz
)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  now_at timestamptz;
  written bigint;
  marked boolean;
begin
  -- First, so that the statement after it sees each rise of the low-water marks.
  if not pg_try_advisory_xact_lock_shared(hashtextextended(in_lock, 0)) then
    return false;
  end if;
  now_at := coalesce(in_now, clock_timestamp());
  if now_at < in_from or now_at >= in_until then
    return false;
  end if;
  -- Fresh ids lie beyond all others, so that a look at the next id there is tells that there is nothing.
  with put as (
    insert into leasehold.jobs (
      id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log, attempts,
      attempts_max, executions, claim_version, step, cancel_requested, transition_seq, event_seq,
      created_at, updated_at, payload, hash, scope
    )
    select v.id, in_queue, in_kind, in_lifecycle, in_revision, 'waiting', 0, in_priority, now_at, false,
      false, coalesce(q.log, in_log), 0, in_attempts, 0, 0, 0, false, 0, 0, now_at, now_at, v.payload,
      v.hash, ''
    from leasehold.queues q
      cross join unnest(in_ids, in_payloads, in_hashes) as v (id, payload, hash)
    where q.name = in_queue
      and in_revision = (
        select l.revision from leasehold.lifecycles l where l.name = in_lifecycle
        order by l.revision desc limit 1
      )
      and case
          when in_ids[cardinality(in_ids)] >= (
            select j.id from leasehold.jobs j where j.id >= in_ids[1] order by j.id limit 1
          ) then not exists (select 1 from leasehold.jobs j where j.id = any(in_ids))
          else true
        end
      and case
          when in_ids[cardinality(in_ids)] >= (
            select t.job_id from leasehold.tombstones t where t.job_id >= in_ids[1]
            order by t.job_id limit 1
          ) then not exists (select 1 from leasehold.tombstones t where t.job_id = any(in_ids))
          else true
        end
    returning 1
  )
  select count(*), exists (
      select 1
      from leasehold.low_water low
      where low.queue = in_queue and low.priority = in_priority and low.run_at <= now_at
    )
  into written, marked
  from put;
  if written > 0 and not marked then
    insert into leasehold.low_water (queue, priority, run_at)
    values (in_queue, in_priority, now_at);
  end if;
  return written > 0;
end
$$;

-- Whether a document has no repeated names and at most so many levels.
create function leasehold.json_fits(document json, levels integer) returns boolean
language plpgsql immutable
as $$
declare
  sort constant text := json_typeof(document);
begin
  if sort not in ('object', 'array') then
    return true;
  end if;
  if levels = 0 then
    return false;
  end if;
  if sort = 'array' then
    return (select coalesce(bool_and(leasehold.json_fits(value, levels - 1)), true)
      from json_array_elements(document));
  end if;
  return (select count(*) = count(distinct key)
      and coalesce(bool_and(leasehold.json_fits(value, levels - 1)), true)
    from json_each(document));
end
$$;

-- An enqueue for other languages: an insert here makes a job in the inserter's transaction. Which key is
-- taken is compared, what was asked for is not.
create view leasehold.enqueue as
  select null::text as queue, null::text as kind, null::text as payload, null::text as scope,
    null::text as key, null::integer as priority, null::timestamptz as run_at,
    null::integer as max_attempts, null::text as partition
  where false;
create function leasehold.enqueue_insert() returns trigger
language plpgsql security definer
-- Named last, or a session's temporary types would come first and run its code with the owner's rights.
set search_path = pg_catalog, pg_temp
as $$
declare
  made record;
begin
  new.queue := coalesce(new.queue, 'default');
  new.scope := coalesce(new.scope, '');
  new.priority := coalesce(new.priority, 0);
  if new.kind is null or (new.queue || '/' || new.kind || '/' || new.scope || coalesce(new.key, ''))
      collate "C" !~ '^[ -~]*$'
    or length(new.queue) not between 1 and 255 or length(new.kind) not between 1 and 255
    or length(new.scope) > 255 or length(coalesce(new.key, 'k')) not between 1 and 255
  then
    raise exception 'leasehold.enqueue: queue, kind, scope and key are texts of up to 255 printable ASCII characters, and only scope may be empty'
      using errcode = 'invalid_parameter_value';
  end if;
  if new.partition collate "C" !~ '^[ -~]{1,255}$' then
    raise exception 'leasehold.enqueue: partition is a text of 1 to 255 printable ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  if new.key is null and new.scope <> '' then
    raise exception 'leasehold.enqueue: a scope needs a key'
      using errcode = 'invalid_parameter_value';
  end if;
  if new.priority not between -32768 and 32767
    or coalesce(new.max_attempts, 1) not between 1 and 65535
    or not coalesce(new.run_at, 'epoch') between timestamptz 'epoch'
      and timestamptz '9999-12-31 23:59:59.999999+00'
  then
    raise exception 'leasehold.enqueue: priority is from -32768 to 32767, max_attempts from 1 to 65535, run_at from 1970 to 9999'
      using errcode = 'invalid_parameter_value';
  end if;
  -- The stricter form refuses lone surrogates.
  if new.payload is null or octet_length(new.payload) > 1048576
    or new.payload::jsonb is null or not leasehold.json_fits(new.payload::json, 128)
  then
    raise exception 'leasehold.enqueue: payload is a JSON text of up to 1 MiB without repeated names or more than 128 levels'
      using errcode = 'invalid_parameter_value';
  end if;
  select * into made
  from leasehold.enqueue_job(
    'leasehold low_water ' || tg_table_schema, gen_random_uuid(), decode(repeat('00', 32), 'hex'),
    new.scope, new.key, 'standard', null, null, new.queue, new.kind, new.priority, null,
    (extract(epoch from new.run_at) * 1000000)::bigint, new.max_attempts, new.payload, null, null,
    null, null, 86400, 604800, 2592000, null, new.partition
  );
  if made.outcome = 'new' then
    return new;
  end if;
  if made.outcome = 'existing' then
    return null;
  end if;
  raise exception 'leasehold.enqueue: %', made.outcome;
end
$$;
revoke all on function leasehold.enqueue_insert from public;
create trigger enqueue_insert instead of insert on leasehold.enqueue
  for each row execute function leasehold.enqueue_insert();
