//! Owns a schema with rows in the way: waiting, ended and future ones by the hundred thousand, in every
//! table that grows, loaded by SQL. `LEASEHOLD_PLAN_ROWS` sets how many of each.

use leasehold_postgres::tokio_postgres::Client;

/// The tables that grow with the work done; the others hold settings.
pub(crate) const GROWING: [&str; 10] = [
    "jobs",
    "waits",
    "outcomes",
    "keys",
    "transitions",
    "events",
    "dead_letters",
    "tombstones",
    "records",
    "audit",
];

/// How many jobs wait, how many have ended, and how many are for later; and so of events.
pub(crate) fn rows() -> u64 {
    let given = std::env::var("LEASEHOLD_PLAN_ROWS").ok();
    given.map_or(100_000, |rows| rows.parse().expect("a number of rows"))
}

/// Whether nobody asked for a long run.
pub(crate) fn is_short() -> bool {
    std::env::var_os("LEASEHOLD_PLAN_ROWS").is_none()
}

/// Fills every growing table; no statistics are made.
pub(crate) async fn crowd(session: &Client, schema: &str, rows: u64) {
    let text = format!(
        "set synchronous_commit = off; {};
        insert into leasehold.queues values ('default', false, null, null, null, 86400, 86400, 86400, now());
        insert into leasehold.jobs
        select gen_random_uuid(), 'default', 'k', 'standard', 1, v.state, 0,
          case when v.state = 'waiting' and i % 10 = 0 then 5 else 0 end,
          now() - interval '1 hour' + v.late * interval '1 day' + i * interval '1 ms',
          false, false, false, 0, 5, 0, 0, null, null, null, null, null, null, 0, false, 0, 0, now(),
          now(), null, case when v.state = 'succeeded' then now() - interval '10 days' end, '1',
          decode(repeat('00', 32), 'hex'), '', null,
          'subject ' || case when v.state = 'waiting' and i % 10 = 0 then 5 else 0 end, 1, null
        from generate_series(1, {rows}) i
          cross join (values ('waiting', 0), ('succeeded', 0), ('waiting', 1)) as v (state, late);
        insert into leasehold.jobs
        select gen_random_uuid(), 'default', 'k', 'standard', 1, 'leased', 0, 0, now(), false, false,
          false, 1, 5, 1, 1, gen_random_uuid(), null, gen_random_uuid(),
          now() + case when i <= 500 then 1 else -1 end * interval '1 hour', now(), 30000, 0, false,
          0, 0, now(), now(), now(), null, '1', decode(repeat('00', 32), 'hex'), '', null, 'subject 0', 1,
          null
        from generate_series(1, 1000) i;
        insert into leasehold.low_water
        select queue, priority, min(run_at) from leasehold.jobs
        where state = 'waiting' and not held and partition is null group by 1, 2;
        insert into leasehold.waits
        select id, gen_random_uuid(), 'cancel', true, null
        from leasehold.jobs where state = 'waiting' limit {rows};
        insert into leasehold.waits
        select w.id, l.id, 'run', true, null
        from (select id, row_number() over () as n from leasehold.jobs where state = 'waiting' limit 1000) w
          join (select id, row_number() over () as n from leasehold.jobs where state = 'leased') l using (n);
        insert into leasehold.outcomes select id, '1', '1', null, null, null from leasehold.jobs;
        insert into leasehold.keys
        select 'scope', 'key ' || i, gen_random_uuid(), decode(repeat('00', 32), 'hex'),
          now() + (i - 1000) * interval '1 s'
        from generate_series(1, {rows}) i;
        insert into leasehold.transitions
        select id, n, now(), 'claim', 'waiting', 'leased', 1, null, null
        from leasehold.jobs cross join generate_series(1, 2) n where state = 'succeeded';
        insert into leasehold.dead_letters
        select id, 1, 'default', 'k', 'run', 'c', '1', 1, now(), now()
        from leasehold.jobs where state = 'succeeded';
        insert into leasehold.tombstones
        select gen_random_uuid(), '', null, 'default', null, null, decode(repeat('00', 32), 'hex'),
          'succeeded', 1, null, null, now() - i * interval '1 s'
        from generate_series(1, {rows}) i;
        insert into leasehold.records
        select 'scope', 'key ' || i, decode(repeat('00', 32), 'hex'), '1', now(),
          now() + (i - 1000) * interval '1 s'
        from generate_series(1, {rows}) i;
        insert into leasehold.events
        select gen_random_uuid(), 't', 'key', 'k' || v.state || v.late || i, 1, '1', null, v.state,
          true, now() - interval '1 hour' + v.late * interval '1 day' + i * interval '1 ms', 0, 5, 0,
          null, null, null, null, null, null, null, now(), now(),
          case when v.state = 'delivered' then now() - interval '10 days' end
        from generate_series(1, {rows}) i
          cross join (values ('waiting', 0), ('delivered', 0), ('waiting', 1)) as v (state, late);
        insert into leasehold.events
        select gen_random_uuid(), 't', 'key', 'leased' || i, 1, '1', null, 'leased', true, now(), 1,
          5, 1, gen_random_uuid(), null, gen_random_uuid(),
          now() + case when i <= 500 then 1 else -1 end * interval '1 hour', now(), 30000, null,
          now(), now(), null
        from generate_series(1, 1000) i",
        each("alter table leasehold.{} set (autovacuum_enabled = off)"),
    );
    session.batch_execute(&within(schema, &text)).await.expect("a crowd");
    in_partitions(session, schema, rows).await;
}

/// Jobs of a thousand partitions, due ones and ones for later.
async fn in_partitions(session: &Client, schema: &str, rows: u64) {
    let text = format!(
        "insert into leasehold.queues (name, paused, keep_succeeded_s, keep_failed_s, keep_dead_s, created_at)
        values ('shared', false, 86400, 86400, 86400, now());
        insert into leasehold.jobs
        select gen_random_uuid(), 'shared', 'k', 'standard', 1, v.state, 0, i % 2,
          now() - interval '1 hour' + v.late * interval '1 day' + i * interval '1 ms',
          false, false, false, 0, 5, 0, 0, null, null, null, null, null, null, 0, false, 0, 0, now(),
          now(), null, null, '1', decode(repeat('00', 32), 'hex'), '', null, null, null, null,
          'tenant ' || i % 1000
        from generate_series(1, {rows}) i
          cross join (values ('waiting', 0), ('waiting', 1)) as v (state, late)",
    );
    session.batch_execute(&within(schema, &text)).await.expect("partitions");
}

/// Makes statistics, as autovacuum would.
pub(crate) async fn analyze(session: &Client, schema: &str) {
    let text = within(schema, &each("vacuum analyze leasehold.{}"));
    for statement in text.split(';') {
        session.batch_execute(statement).await.expect("analyzed");
    }
}

/// A text in a schema's terms.
pub(crate) fn within(schema: &str, text: &str) -> String {
    text.replace("leasehold.", &format!("\"{schema}\"."))
}

fn each(form: &str) -> String {
    GROWING.map(|table| form.replace("{}", table)).join(";")
}
