//! Owns the list of the statements that touch a growing table, each with values that ask for a hundred
//! items. A statement that is in no list fails the test.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_postgres::tokio_postgres::Client;

use crate::crowd::{GROWING, within};

/// How many items each statement is asked for.
pub(crate) const ITEMS: u64 = 100;

/// A statement as a file has it, and what it is asked.
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) values: String,
    pub(crate) sort: Sort,
}

/// What is asked of a statement's plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// No plan looks at more than it was asked for.
    Path,
    /// So too, where there are statistics; never kept prepared, so never planned for any value.
    Page,
    /// A count: reads an index, where nothing is forbidden.
    Count,
}

const NONE: &str = "'00000000-0000-0000-0000-000000000000'";
const COUNTS: [&str; 7] = [
    "count_leased",
    "count_leased_all",
    "stats_blocked",
    "stats_delivered",
    "stats_ended",
    "stats_leased",
    "stats_waiting",
];
const PAGES: [&str; 7] = [
    "find_children",
    "find_dead_letters",
    "find_events",
    "find_jobs",
    "find_jobs_about",
    "find_parents",
    "find_transitions",
];

/// The values by statement. `{waiting}`, `{leased}`, `{ended}`, `{events}`, `{held_events}` and `{new}`
/// stand for arrays of ids, `{expired}` for leased ones; `{x TYPE VALUE}` for an array of that value.
const TABLE: &[(&str, &str)] = &[
    (
        "claim",
        "'default', now(), 100, gen_random_uuid(), gen_random_uuid(), now() + interval '30 s', 30000, '{}', false",
    ),
    (
        "claim_heads",
        "{in_turn}, now(), gen_random_uuid(), gen_random_uuid(), now() + interval '30 s', 30000, '{}'",
    ),
    (
        "claim_turns",
        "'shared', now(), 100, gen_random_uuid(), gen_random_uuid(), now() + interval '30 s', 30000, '{}', {partitions}, {x bigint 1}, {x smallint 0}",
    ),
    (
        "claim_alone",
        "'default', null, 100, gen_random_uuid(), gen_random_uuid(), null, 30000, array['standard 1']",
    ),
    ("claim_again", "'default', gen_random_uuid(), gen_random_uuid(), now(), 100"),
    ("count_leased", "'default', now()"),
    ("count_leased_all", "now()"),
    ("count_parents", "({waiting})[1]"),
    ("drop_checkpoint", "{ended}"),
    (
        "end_alone",
        "{leased}, gen_random_uuid(), 1, gen_random_uuid(), 0, null, array['standard 1'], 'succeeded', 'succeed', true",
    ),
    ("end_jobs", "{leased}, 'succeeded', 'succeed', now()"),
    ("event_candidates", "now(), null, 100"),
    ("event_claim_again", "gen_random_uuid(), gen_random_uuid(), now(), 100"),
    ("event_is_first", "{events}"),
    ("expired_events", "now(), null, 100"),
    ("expired_jobs", "'default', now(), 100"),
    ("expired_jobs_all", "now(), 100"),
    ("find_children", "({leased})[1], {none}, 100"),
    ("find_dead_letters", "{none}, 0, null, 100, null, null, null, {last}"),
    ("find_event", "{none}, ({events})[1], null, null, null, null, 100"),
    ("find_events", "{none}, null, null, null, null, null, 100"),
    ("find_job", "({ended})[1], null, null, null, null, null"),
    ("find_jobs", "{none}, null, null, null, null, 100, null"),
    ("find_jobs_about", "{none}, null, null, null, 'subject 5', 100, null"),
    ("find_key", "'scope', 'key 7'"),
    ("find_parents", "({waiting})[1], {none}, 100"),
    ("find_transitions", "({ended})[1], 0, 100"),
    (
        "insert_audit",
        "{new}, {x timestamptz now()}, {x text 'a'}, {x text 'a'}, {x text 'a'}, {x text null}",
    ),
    (
        "insert_dead_letter",
        "{leased}, {x bigint 2}, {x text 'default'}, {x text 'k'}, {x text 'run'}, {x text 'c'}, {x text '1'}, {x bigint 1}, {x timestamptz now()}, {x text 'open'}",
    ),
    (
        "insert_event",
        "{new}, {x text 't'}, {x text 'none'}, {x text null}, {x bigint null}, {x text '1'}, {x text null}, {x text 'waiting'}, {x boolean false}, {x timestamptz now()}, {x bigint 0}, {x bigint 5}, {x bigint 0}, {x uuid null}, {x text null}, {x uuid null}, {x timestamptz null}, {x timestamptz null}, {x bigint null}, {x text null}, {x timestamptz now()}, {x timestamptz now()}, {x timestamptz null}, {x uuid null}",
    ),
    (
        "insert_job",
        "{new}, {x text 'default'}, {x text 'k'}, {x text 'standard'}, {x bigint 1}, {x text 'waiting'}, {x smallint 0}, {x smallint 0}, {x timestamptz now()}, {x boolean false}, {x boolean false}, {x boolean false}, {x bigint 0}, {x bigint 5}, {x bigint 0}, {x bigint 0}, {x uuid null}, {x text null}, {x uuid null}, {x timestamptz null}, {x timestamptz null}, {x bigint null}, {x bigint 0}, {x boolean false}, {x bigint 0}, {x bigint 0}, {x timestamptz now()}, {x timestamptz now()}, {x timestamptz null}, {x timestamptz null}, {x text '1'}, {x bytea decode(repeat('00', 32), 'hex')}, {x text ''}, {x text null}, {x text null}, {x bigint null}, {x text null}, {x text null}, {x boolean false}",
    ),
    (
        "insert_same",
        "{new}, {x text '1'}, {x bytea decode(repeat('00', 32), 'hex')}, 'default', 'k', 'standard', 1, 0::smallint, now(), false, false, 5, now(), false",
    ),
    (
        "insert_same_named",
        "{new}, {x text '1'}, {x bytea decode(repeat('00', 32), 'hex')}, 'default', 'k', 'standard', 1, 0::smallint, now(), false, false, 5, now(), false, {x text ''}, {x text null}, {x text null}, {x bigint null}, {x text null}, {x text null}",
    ),
    (
        "insert_transition",
        "{new}, {x bigint 9}, {x timestamptz now()}, {x text 'a'}, {x text 'a'}, {x text 'a'}, {x bigint 1}, {x uuid null}, {x text null}",
    ),
    ("insert_wait", "{new}, {new}, {x text 'run'}, {x boolean true}, {x text null}"),
    ("load_blocked", "{waiting}, {leased}"),
    ("load_checkpoint", "{waiting}"),
    ("load_keys", "{x text 'scope'}, {keys}"),
    ("load_known_events", "{events}"),
    ("load_known_jobs", "{waiting}"),
    ("load_letters", "({ended})[1]"),
    ("load_present", "{waiting}"),
    ("load_present_events", "{events}"),
    ("load_replayed", "{ended}"),
    ("load_request", "{ended}"),
    ("load_sent", "{ended}"),
    ("load_tombstones", "{waiting}"),
    ("load_unsent", "{ended}"),
    ("load_waits", "{leased}"),
    ("lock_events", "{held_events}, null"),
    ("lock_events_free", "{held_events}, null"),
    ("lock_jobs", "{leased}, null"),
    ("lock_jobs_free", "{leased}, null"),
    ("note_replay", "{ended}, {new}"),
    ("once_load", "'scope', 'key 7'"),
    ("once_store", "'scope', 'key 7', decode(repeat('00', 32), 'hex'), '1', now(), now()"),
    ("pass_key", "{x text 'scope'}, {keys}, {ended}, {new}"),
    ("partitions", "'shared', '', null, now(), true, true, 100"),
    ("prune_dead_letters", "{ended}"),
    ("prune_events", "'delivered', now() - interval '1 day', 100"),
    ("prune_job", "{ended}"),
    ("prune_jobs", "'default', 'succeeded', now() - interval '1 day', 100"),
    ("prune_keys", "now(), 100"),
    ("prune_outcome", "{ended}"),
    ("prune_records", "now(), 100"),
    ("prune_tombstone", "{ended}, now()"),
    ("prune_tombstones", "now(), 100"),
    ("prune_transitions", "{ended}"),
    ("prune_wait", "{ended}"),
    ("prune_waited", "{ended}"),
    ("set_aside", "({leased})[1], now(), gen_random_uuid(), 'infinity'"),
    ("set_aside_event", "({held_events})[1], now(), gen_random_uuid(), '{{}}'"),
    ("stats_blocked", ""),
    ("stats_delivered", ""),
    ("shared_queues", "array['default', 'shared', 'none']"),
    ("stats_ended", ""),
    ("stats_leased", "now()"),
    ("stats_waiting", "now()"),
    (
        "take_key",
        "{x text 'scope'}, {keys}, {new}, {x bytea decode(repeat('00', 32), 'hex')}, {x timestamptz now()}, now()",
    ),
    ("mark_parents", "{leased}"),
    ("without_due", "'default', now()"),
    (
        "write_dead_letter",
        "{ended}, {x bigint 1}, {x text 'open'}, {x uuid null}, {x timestamptz now()}, {x text null}, {x text null}",
    ),
    (
        "write_event",
        "{held_events}, {x text 'waiting'}, {x timestamptz now()}, {x bigint 1}, {x bigint 2}, {x uuid null}, {x text null}, {x uuid null}, {x timestamptz null}, {x timestamptz null}, {x bigint null}, {x text null}, {x timestamptz now()}, {x timestamptz null}",
    ),
    (
        "write_job",
        "{leased}, {x text 'waiting'}, {x smallint 0}, {x timestamptz now()}, {x boolean false}, {x boolean false}, {x bigint 1}, {x bigint 5}, {x bigint 1}, {x bigint 2}, {x uuid null}, {x text null}, {x uuid null}, {x timestamptz null}, {x timestamptz null}, {x bigint null}, {x bigint 0}, {x boolean false}, {x bigint 0}, {x bigint 0}, {x timestamptz now()}, {x timestamptz null}, {x timestamptz null}",
    ),
    ("write_wait", "{waiting}, {leased}, {x boolean false}, {x text null}"),
    ("write_outcome", "{leased}, {x text '1'}, {x text null}, {x text null}, {x timestamptz null}"),
];
/// What runs beside the claim path: the keeping of marks, the count of all undelivered events, the
/// reading of the audit log, and what is known of a subject that is run again.
const BESIDE: [&str; 7] = [
    "find_audit",
    "find_audit_about",
    "find_audit_by",
    "find_marks",
    "load_subject",
    "raise_marks",
    "stats_outbox",
];

/// The list, in a schema's terms.
pub(crate) async fn statements(session: &Client, schema: &str) -> Vec<Said> {
    let ids = ids(session, schema).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql");
    let mut missing = BTreeSet::new();
    for file in std::fs::read_dir(folder).expect("the statements") {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a statement");
        if GROWING.iter().any(|table| {
            text.contains(&format!("leasehold.{table}\n"))
                || text.contains(&format!("leasehold.{table} "))
        }) {
            missing.insert(name);
        }
    }
    let mut all = Vec::new();
    for (name, values) in TABLE {
        missing.remove(*name);
        let text = std::fs::read_to_string(format!("{folder}/{name}.sql")).expect("a statement");
        let sort = match *name {
            name if COUNTS.contains(&name) => Sort::Count,
            name if PAGES.contains(&name) => Sort::Page,
            _ => Sort::Path,
        };
        all.push(Said { name: (*name).to_owned(), text, values: filled(values, &ids), sort });
    }
    BESIDE.iter().for_each(|name| assert!(missing.remove(*name), "{name}"));
    assert!(missing.is_empty(), "not in the list: {missing:?}");
    all
}

async fn ids(session: &Client, schema: &str) -> BTreeMap<&'static str, String> {
    let mut ids = BTreeMap::from([
        ("new", format!("array(select gen_random_uuid() from generate_series(1, {ITEMS}))")),
        ("none", format!("{NONE}::uuid")),
        ("last", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid".to_owned()),
    ]);
    let from = [
        ("waiting", "select id from leasehold.jobs where state = 'waiting'"),
        ("leased", "select id from leasehold.jobs where state = 'leased'"),
        ("ended", "select id from leasehold.jobs where finished_at is not null"),
        ("events", "select id from leasehold.events where state = 'waiting'"),
        ("held_events", "select id from leasehold.events where state = 'leased'"),
        ("new", "select gen_random_uuid() from generate_series(1, 1000)"),
        ("keys", "select key from leasehold.keys"),
        (
            "in_turn",
            "select distinct on (partition) id from leasehold.jobs where state = 'waiting' and queue = 'shared'",
        ),
        ("partitions", "select distinct partition from leasehold.jobs where queue = 'shared'"),
    ];
    for (name, rows) in from {
        let text = format!("select array({rows} limit {ITEMS})::text");
        let row = session.query_one(&within(schema, &text), &[]).await.expect("ids");
        let kind = if matches!(name, "keys" | "partitions") { "text" } else { "uuid" };
        ids.insert(name, format!("'{}'::{kind}[]", row.get::<_, String>(0)));
    }
    ids
}

/// Puts values in for what stands between braces.
fn filled(values: &str, ids: &BTreeMap<&'static str, String>) -> String {
    let mut text = values.to_owned();
    for (name, array) in ids {
        text = text.replace(&format!("{{{name}}}"), array);
    }
    while let Some(at) = text.find("{x ") {
        let end = at + text[at..].find('}').expect("an end");
        let (kind, value) = text[at + 3..end].split_once(' ').expect("a type and a value");
        let array = format!("array_fill({value}::{kind}, array[{ITEMS}])");
        text.replace_range(at..=end, &array);
    }
    text
}
