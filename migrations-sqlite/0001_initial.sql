-- The first schema. Times are microseconds since 1970 in UTC; ids are 16 bytes; booleans are 0 or 1.
-- No foreign keys: the tables live beside the user's own, and locks must stay on single rows.

create table leasehold_store (
  id integer primary key check (id = 1),
  epoch integer not null check (epoch between 0 and 32767),
  max_leased integer check (max_leased >= 0)
) strict;
insert into leasehold_store (id, epoch) values (1, 0);

-- Differs: the store's clock, which the server keeps on PostgreSQL. Goes back only by a reset, which
-- every process on the file sees by the count. What a process last kept of it, and how long its machine had been
-- up then, tell who opens the file how much time has passed.
create table leasehold_clock (
  id integer primary key check (id = 1),
  now_us integer not null,
  resets integer not null,
  kept_us integer not null,
  boot text,
  up_us integer
) strict;
insert into leasehold_clock (id, now_us, resets, kept_us) values (1, 0, 0, 0);

create table leasehold_queues (
  name text primary key,
  paused integer not null check (paused in (0, 1)),
  max_leased integer check (max_leased >= 0),
  lease_ms integer check (lease_ms >= 1000),
  log integer check (log in (0, 1)),
  keep_succeeded_s integer not null,
  keep_failed_s integer not null,
  keep_dead_s integer not null,
  created_at integer not null,
  partition_limit integer check (partition_limit >= 0),
  partition_rate integer check (partition_rate >= 1),
  partition_burst integer check (partition_burst >= 1),
  constraint queues_rate_has_burst check ((partition_rate is null) = (partition_burst is null))
) strict;

create table leasehold_topics (
  name text primary key,
  ordered integer not null check (ordered in (0, 1))
) strict;

create table leasehold_lifecycles (
  name text not null,
  revision integer not null check (revision >= 1),
  hash blob not null check (length(hash) = 32),
  definition text not null,
  primary key (name, revision)
) strict;

create table leasehold_workers (
  id blob primary key,
  name text not null,
  introduced_at integer not null
) strict;

create table leasehold_jobs (
  id blob primary key,
  queue text not null,
  kind text not null,
  lifecycle text not null,
  revision integer not null,
  state text not null
    check (state in ('waiting', 'leased', 'succeeded', 'failed', 'dead_letter', 'cancelled')),
  stage integer not null check (stage >= 0),
  priority integer not null,
  run_at integer not null,
  held integer not null check (held in (0, 1)),
  again integer not null check (again in (0, 1)),
  log integer not null check (log in (0, 1)),
  attempts integer not null check (attempts >= 0),
  attempts_max integer not null check (attempts_max >= 1),
  executions integer not null check (executions >= 0),
  claim_version integer not null check (claim_version >= 0),
  claim_id blob,
  last_verdict text,
  worker_id blob,
  lease_expires_at integer,
  heartbeat_at integer,
  lease_ms integer,
  step integer not null check (step >= 0),
  cancel_requested integer not null check (cancel_requested in (0, 1)),
  transition_seq integer not null,
  event_seq integer not null,
  created_at integer not null,
  updated_at integer not null,
  started_at integer,
  finished_at integer,
  payload text, -- null: a long one, in payloads
  hash blob not null check (length(hash) = 32),
  scope text not null,
  key text,
  subject text,
  subject_version integer,
  traceparent text,
  partition text,
  replay_of blob,
  constraint jobs_subject_has_version check ((subject is null) = (subject_version is null)),
  constraint jobs_lease_exactly_when_leased check (
    (state = 'leased') = (worker_id is not null)
    and (worker_id is null) = (lease_expires_at is null)
    and (worker_id is null) = (heartbeat_at is null)
    and (worker_id is null) = (lease_ms is null)
    and (worker_id is null or (claim_id is not null and last_verdict is null))
  ),
  constraint jobs_finished_exactly_when_ended check (
    (state in ('waiting', 'leased')) = (finished_at is null)
  )
) strict, without rowid;
-- The claim order within a queue, of the jobs that are of no partition, and within each partition. With
-- these parentheses, and the partition at the end, SQLite finds all it reads in the index.
create index leasehold_jobs_claimable on leasehold_jobs (queue, priority desc, run_at, id, partition)
  where state = 'waiting' and (held = 0 and partition is null);
create index leasehold_jobs_in_turn on leasehold_jobs (queue, partition, priority desc, run_at, id)
  where state = 'waiting' and (held = 0 and partition is not null);
-- How many leases each partition holds.
create index leasehold_jobs_leased_in on leasehold_jobs (queue, partition)
  where state = 'leased' and partition is not null;
-- Where every job is, for listings by any of these and for what is leased; expired leases are found by
-- reading those. Holds no column a heartbeat changes.
create index leasehold_jobs_listed on leasehold_jobs (state, queue, kind, id);
-- What prune looks at.
create index leasehold_jobs_ended on leasehold_jobs (queue, state, finished_at, id)
  where finished_at is not null;
create index leasehold_jobs_subject on leasehold_jobs (subject, subject_version, id)
  where subject is not null;
-- What waits for other jobs, for the figures.
create index leasehold_jobs_held on leasehold_jobs (queue) where state = 'waiting' and held = 1;

-- Payloads too long for their job's row, which every claim and settlement writes again.
create table leasehold_payloads (
  job_id blob primary key,
  payload text not null
) strict, without rowid;

create table leasehold_outcomes (
  job_id blob primary key,
  checkpoint text,
  result text,
  failure text,
  first_failure_at integer,
  last_failure_at integer
) strict, without rowid;

-- The latest rerun of each subject; outlasts its job.
create table leasehold_subjects (
  name text primary key,
  version integer not null,
  job_id blob not null
) strict;

create table leasehold_keys (
  scope text not null,
  key text not null,
  job_id blob not null,
  hash blob not null check (length(hash) = 32),
  expires_at integer,
  primary key (scope, key)
) strict;
create index leasehold_keys_expiring on leasehold_keys (expires_at, scope, key)
  where expires_at is not null;

create table leasehold_transitions (
  job_id blob not null,
  sequence integer not null,
  at integer not null,
  verb text not null,
  from_status text not null,
  to_status text not null,
  claim_version integer not null,
  worker_id blob,
  actor text,
  primary key (job_id, sequence)
) strict, without rowid;

create table leasehold_sequences (
  key text primary key,
  last integer not null
) strict;

create table leasehold_events (
  id blob primary key,
  topic text not null,
  ordering text not null check (ordering in ('job', 'key', 'none')),
  order_key text,
  sequence integer,
  payload text not null,
  traceparent text,
  state text not null
    check (state in ('waiting', 'leased', 'delivered', 'dead_letter')),
  ordered integer not null check (ordered in (0, 1)),
  run_at integer not null,
  attempts integer not null check (attempts >= 0),
  attempts_max integer not null check (attempts_max >= 1),
  claim_version integer not null check (claim_version >= 0),
  claim_id blob,
  last_verdict text,
  worker_id blob,
  lease_expires_at integer,
  heartbeat_at integer,
  lease_ms integer,
  failure text,
  created_at integer not null,
  updated_at integer not null,
  finished_at integer,
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
) strict;
-- The claim order within a topic.
create index leasehold_events_claimable on leasehold_events (topic, run_at, id)
  where state = 'waiting';
-- Where every event is, for listings and for what is leased.
create index leasehold_events_listed on leasehold_events (state, topic, id);
-- The undelivered events of an ordering key, in order: is an earlier one still to go?
create index leasehold_events_undelivered on leasehold_events (ordering, order_key, sequence)
  where ordered = 1 and state in ('waiting', 'leased');
create unique index leasehold_events_sequence on leasehold_events (ordering, order_key, sequence)
  where order_key is not null;
create index leasehold_events_ended on leasehold_events (state, finished_at, id)
  where finished_at is not null;

create table leasehold_dead_letters (
  job_id blob not null,
  claim_version integer not null,
  queue text not null,
  kind text not null,
  stage text not null,
  error_class text not null,
  failure text not null,
  attempts integer not null,
  first_failure_at integer not null,
  last_failure_at integer not null,
  state text not null default 'open'
    check (state in ('open', 'replaying', 'superseded', 'resolved', 'escalated')),
  replay_job blob,
  changed_at integer,
  changed_by text,
  note text,
  primary key (job_id, claim_version)
) strict;

create index leasehold_dead_letters_listed on leasehold_dead_letters (queue, job_id, claim_version);
-- What the end of a replaying job decides.
create index leasehold_dead_letters_replaying on leasehold_dead_letters (replay_job)
  where state = 'replaying';

create table leasehold_tombstones (
  job_id blob primary key,
  scope text not null,
  key text,
  queue text not null,
  subject text,
  subject_version integer,
  hash blob not null check (length(hash) = 32),
  outcome text not null,
  claim_version integer not null,
  claim_id blob,
  last_verdict text,
  pruned_at integer not null
) strict;
create index leasehold_tombstones_pruned on leasehold_tombstones (pruned_at, job_id);
create index leasehold_tombstones_subject on leasehold_tombstones (subject, subject_version, job_id)
  where subject is not null;

create table leasehold_records (
  scope text not null,
  key text not null,
  hash blob not null check (length(hash) = 32),
  response text,
  created_at integer not null,
  expires_at integer not null,
  primary key (scope, key)
) strict;
create index leasehold_records_expiring on leasehold_records (expires_at, scope, key);

create table leasehold_audit (
  id blob primary key,
  at integer not null,
  actor text not null,
  action text not null,
  target text not null,
  detail text
) strict;
create index leasehold_audit_target on leasehold_audit (target, id);
create index leasehold_audit_actor on leasehold_audit (actor, id);

create table leasehold_documents (
  namespace text not null,
  key text not null,
  version integer not null check (version >= 1),
  body text,
  created_at integer not null,
  updated_at integer not null,
  expires_at integer,
  primary key (namespace, key),
  constraint documents_bare_versions_end check (body is not null or expires_at is not null)
) strict;
create index leasehold_documents_expiring on leasehold_documents (expires_at, namespace, key)
  where expires_at is not null;

create table leasehold_blobs (
  namespace text not null,
  key text not null,
  bytes blob not null,
  created_at integer not null,
  expires_at integer,
  primary key (namespace, key)
) strict;
create index leasehold_blobs_expiring on leasehold_blobs (expires_at, namespace, key)
  where expires_at is not null;

create table leasehold_tokens (
  bucket text primary key,
  level integer not null check (level >= 0),
  at integer not null,
  full_at integer not null
) strict;
create index leasehold_tokens_full on leasehold_tokens (full_at, bucket);

-- What jobs wait for: other jobs. An open wait keeps a waiting job held; it goes with that job.
create table leasehold_waits (
  job_id blob not null,
  parent_id blob not null,
  on_failure text not null check (on_failure in ('cancel', 'run', 'wait')),
  open integer not null check (open in (0, 1)),
  outcome text,
  primary key (job_id, parent_id)
) strict, without rowid;
-- Who waits for a job.
create index leasehold_waits_parent on leasehold_waits (parent_id, job_id);
-- Whether a job waits for any other.
create index leasehold_waits_open on leasehold_waits (job_id, parent_id) where open = 1;
-- Which partition of each queue had its turn last, '' for the jobs of none.
create table leasehold_turns (
  queue text primary key,
  turn integer not null,
  partition text not null
) strict;

-- What partitions may start at their queue's rate; one without a row, or with a full one, a whole burst.
create table leasehold_starts (
  queue text not null,
  partition text not null,
  level integer not null check (level >= 0),
  at integer not null,
  open_at integer not null,
  full_at integer not null,
  primary key (queue, partition)
) strict;
create index leasehold_starts_full on leasehold_starts (full_at, queue, partition);

-- Read views: the stable surface for people and other programs. Tables are private.
create view leasehold_v_jobs as
  select j.id, j.queue, j.kind, j.lifecycle, j.revision, j.state, j.stage, j.priority, j.run_at,
    j.held, j.attempts, j.attempts_max, j.executions, j.claim_version, j.worker_id,
    j.lease_expires_at, j.heartbeat_at, j.cancel_requested, j.scope, j.key, j.subject,
    j.subject_version, coalesce(j.payload, p.payload) as payload, o.result, o.checkpoint, o.failure, j.created_at, j.updated_at,
    j.started_at, j.finished_at, j.partition, j.replay_of
  from leasehold_jobs j
    left join leasehold_payloads p on p.job_id = j.id
    left join leasehold_outcomes o on o.job_id = j.id;
create view leasehold_v_events as
  select id, topic, ordering, order_key, sequence, payload, state, attempts, attempts_max, run_at,
    claim_version, failure, created_at, updated_at, finished_at
  from leasehold_events;
create view leasehold_v_dead_letters as select * from leasehold_dead_letters;
create view leasehold_v_waits as
  select w.job_id, j.state as job_state, w.parent_id, coalesce(p.state, w.outcome) as parent_state,
    w.on_failure, w.open
  from leasehold_waits w
    join leasehold_jobs j on j.id = w.job_id
    left join leasehold_jobs p on p.id = w.parent_id;
create view leasehold_v_queues as
  select name, paused, max_leased, lease_ms, log, keep_succeeded_s, keep_failed_s, keep_dead_s,
    partition_limit, partition_rate, partition_burst
  from leasehold_queues;

-- An enqueue for other languages: an insert here makes a job in the inserter's transaction. Which key is
-- taken is compared, what was asked for is not. Every rule is checked by `raise(abort)` and every write
-- says what to do on a conflict, so that the inserter's own `or replace` or `or ignore` counts nowhere.
create view leasehold_enqueue as
  select null as queue, null as kind, null as payload, null as scope, null as key, null as priority,
    null as run_at, null as max_attempts, null as partition
  where 0;
-- Private: the same with the job's id and the time made.
create view leasehold_enqueue_row as
  select null as id, null as now, null as queue, null as kind, null as payload, null as scope,
    null as key, null as priority, null as run_at, null as max_attempts, null as partition
  where 0;
create trigger leasehold_enqueue_insert instead of insert on leasehold_enqueue
begin
  insert into leasehold_enqueue_row
  select cast(randomblob(6) || substr(x'404142434445464748494a4b4c4d4e4f', 1 + (random() & 15), 1)
      || randomblob(1) || substr(x'808182838485868788898a8b8c8d8e8f', 1 + (random() & 15), 1)
      || randomblob(7) as blob),
    max(now_us + 1, case when exists (
      select 1 from leasehold_jobs where state = 'leased' and lease_expires_at > now_us
    ) or exists (
      select 1 from leasehold_events where state = 'leased' and lease_expires_at > now_us
    ) then 0 else cast(strftime('%s', 'now') as integer) * 1000000
      + cast(substr(strftime('%f', 'now'), 4) as integer) * 1000 end),
    coalesce(new.queue, 'default'), new.kind, new.payload, coalesce(new.scope, ''), new.key,
    coalesce(new.priority, 0), new.run_at, new.max_attempts, new.partition
  from leasehold_clock
  where id = 1;
end;
create trigger leasehold_enqueue_row_insert instead of insert on leasehold_enqueue_row
begin
  select raise(abort, 'leasehold_enqueue: queue, kind, scope and key are texts of up to 255 printable ASCII characters, and only scope may be empty')
  where not coalesce(
    typeof(new.queue) = 'text' and typeof(new.kind) = 'text' and typeof(new.scope) = 'text'
    and typeof(new.key) in ('text', 'null')
    and length(cast(new.queue as blob)) between 1 and 255
    and length(cast(new.kind as blob)) between 1 and 255
    and length(cast(new.scope as blob)) <= 255
    and length(cast(coalesce(new.key, 'k') as blob)) between 1 and 255
    and length(new.queue) = length(cast(new.queue as blob))
    and length(new.kind) = length(cast(new.kind as blob))
    and length(new.scope) = length(cast(new.scope as blob))
    and length(coalesce(new.key, '')) = length(cast(coalesce(new.key, '') as blob))
    and new.queue || new.kind || new.scope || coalesce(new.key, '') not glob '*[^ -~]*', 0);
  select raise(abort, 'leasehold_enqueue: partition is a text of 1 to 255 printable ASCII characters')
  where new.partition is not null and not (
    typeof(new.partition) = 'text' and length(new.partition) = length(cast(new.partition as blob))
    and length(new.partition) between 1 and 255 and new.partition not glob '*[^ -~]*');
  select raise(abort, 'leasehold_enqueue: a scope needs a key')
  where new.key is null and new.scope <> '';
  select raise(abort, 'leasehold_enqueue: priority is a whole number from -32768 to 32767, max_attempts one from 1 to 65535, run_at microseconds since 1970')
  where not coalesce(
    typeof(new.priority) = 'integer' and new.priority between -32768 and 32767
    and typeof(new.max_attempts) in ('integer', 'null')
    and coalesce(new.max_attempts, 1) between 1 and 65535
    and typeof(new.run_at) in ('integer', 'null')
    and coalesce(new.run_at, 0) between 0 and 253402300799999999, 0);
  select raise(abort, 'leasehold_enqueue: payload is a JSON text of up to 1 MiB without repeated names, lone surrogates or more than 128 levels')
  where not coalesce(case
    when typeof(new.payload) <> 'text' then 0
    when length(cast(new.payload as blob)) > 1048576 then 0
    when instr(cast(new.payload as blob), x'00') > 0 then 0
    -- Bytes that are no UTF-8.
    when new.payload glob '*[^' || char(1) || '-~]*' and (
      with recursive walk(at) as (
        select 1
        union all
        select at + case
          when substr(b, at, 1) < x'80' then 1
          when substr(b, at, 1) between x'c2' and x'df' and substr(b, at + 1, 1) between x'80' and x'bf' then 2
          when (substr(b, at, 2) between x'e0a0' and x'ed9f' or substr(b, at, 2) between x'ee80' and x'efbf')
            and substr(b, at + 1, 1) between x'80' and x'bf'
            and substr(b, at + 2, 1) between x'80' and x'bf' then 3
          when substr(b, at, 2) between x'f090' and x'f48f' and substr(b, at + 1, 1) between x'80' and x'bf'
            and substr(b, at + 2, 1) between x'80' and x'bf'
            and substr(b, at + 3, 1) between x'80' and x'bf' then 4
        end
        from walk cross join (select cast(new.payload as blob) as b)
        where at <= length(b)
      )
      select max(at) <> length(cast(new.payload as blob)) + 1 from walk
    ) then 0
    when not json_valid(new.payload) then 0
    -- Escaped halves of a character beyond U+FFFF that have lost the other half. An escaped backslash begins no
    -- escape.
    when new.payload glob '*\u[dD][89a-fA-F]*' and exists (
      select 1 from (select replace(new.payload, '\\', '--') as t)
      where t glob '*\u[dD][89abAB]??[^\]*'
        or t glob '*\u[dD][89abAB]??\[^u]*'
        or t glob '*\u[dD][89abAB]??\u[^dD]*'
        or t glob '*\u[dD][89abAB]??\u[dD][^c-fC-F]*'
        or '     ' || t glob '*[^\]?????\u[dD][c-fC-F]*'
        or '     ' || t glob '*?[^u]????\u[dD][c-fC-F]*'
        or '     ' || t glob '*??[^dD]???\u[dD][c-fC-F]*'
        or '     ' || t glob '*???[^89abAB]??\u[dD][c-fC-F]*'
    ) then 0
    when exists (
      select 1 from json_tree(new.payload) where typeof(key) = 'text'
      group by parent, key having count(*) > 1
    ) then 0
    -- A path has a dot or a bracket for each level, and those of its names besides.
    when exists (
      select 1 from json_tree(new.payload)
      where length(fullkey) - length(replace(replace(fullkey, '.', ''), '[', ''))
        + (type in ('object', 'array')) > 128
    ) and exists (
      with recursive place as materialized (
        select id, parent from json_tree(new.payload) where type in ('object', 'array')
      ), levels(id, depth) as (
        select id, 1 from place where parent is null
        union all
        select p.id, l.depth + 1
        from levels l
          cross join place p on p.parent = l.id
        where l.depth <= 128
      )
      select 1 from levels where depth > 128
    ) then 0
    else 1
  end, 0);
  select raise(abort, 'leasehold_enqueue: the id is taken')
  where typeof(new.id) <> 'blob' or length(new.id) <> 16 or typeof(new.now) <> 'integer'
    or new.now <= (select now_us from leasehold_clock where id = 1)
    or exists (select 1 from leasehold_jobs where id = new.id)
    or exists (select 1 from leasehold_tombstones where job_id = new.id);
  delete from leasehold_keys
  where scope = new.scope and key = new.key and expires_at <= new.now;
  insert into leasehold_keys (scope, key, job_id, hash)
  select new.scope, new.key, new.id, zeroblob(32)
  where new.key is not null
  on conflict do nothing;
  insert into leasehold_queues (
    name, paused, keep_succeeded_s, keep_failed_s, keep_dead_s, created_at
  )
  select new.queue, 0, 86400, 604800, 2592000, new.now
  where new.key is null or exists (
      select 1 from leasehold_keys where scope = new.scope and key = new.key and job_id = new.id
    )
  on conflict do nothing;
  insert into leasehold_jobs (
    id, queue, kind, lifecycle, revision, state, stage, priority, run_at, held, again, log,
    attempts, attempts_max, executions, claim_version, step, cancel_requested, transition_seq,
    event_seq, created_at, updated_at, payload, hash, scope, key, partition
  )
  select new.id, new.queue, new.kind, l.name, l.revision, 'waiting', 0, new.priority,
    max(coalesce(new.run_at, new.now), new.now), 0, 0,
    coalesce((select log from leasehold_queues where name = new.queue), json_extract(l.definition, '$.log')),
    0, coalesce(new.max_attempts, json_extract(l.definition, '$.budget.attempts')), 0, 0, 0, 0, 0, 0,
    new.now, new.now, iif(length(cast(new.payload as blob)) <= 512, new.payload, null), zeroblob(32),
    new.scope, new.key, new.partition
  from leasehold_lifecycles l
  where l.name = 'standard'
    and l.revision = (select max(revision) from leasehold_lifecycles where name = 'standard')
    and (new.key is null or exists (
        select 1 from leasehold_keys where scope = new.scope and key = new.key and job_id = new.id
      ))
  on conflict do nothing;
  insert into leasehold_payloads (job_id, payload)
  select new.id, new.payload
  where exists (select 1 from leasehold_jobs where id = new.id and payload is null)
  on conflict do nothing;
  update leasehold_clock set now_us = new.now where id = 1;
end;
