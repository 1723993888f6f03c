//! Owns the check that the statements of records and reruns walk the index made for them, under custom
//! and generic plans.

use leasehold_postgres::tokio_postgres::{Client, SimpleQueryMessage};

use crate::place::Place;

/// The tables that get many rows. A bare `analyze` would lock every table of the database at once.
const CROWDED: [&str; 9] = [
    "documents",
    "blobs",
    "tokens",
    "records",
    "audit",
    "subjects",
    "jobs",
    "outcomes",
    "tombstones",
];

/// Many rows of each sort, most of them not wanted.
async fn crowd(session: &Client, schema: &str) {
    let text = format!(
        "insert into \"{schema}\".documents
        select 'n' || i % 10, 'k' || i, 1, case when i % 2 = 0 then '1' end, now(), now(),
          now() + i * interval '1 s'
        from generate_series(1, 20000) i;
        insert into \"{schema}\".blobs
        select 'n' || i % 10, 'k' || i, '', now(), now() + i * interval '1 s'
        from generate_series(1, 20000) i;
        insert into \"{schema}\".tokens
        select 'b' || i, 0, now(), now() + i * interval '1 s' from generate_series(1, 20000) i;
        insert into \"{schema}\".records
        select '', 'k' || i, decode(repeat('00', 32), 'hex'), '1', now(), now() + i * interval '1 s'
        from generate_series(1, 20000) i;
        insert into \"{schema}\".audit
        select gen_random_uuid(), now(), 'actor ' || i % 100, 'act', 'target ' || i % 1000, null
        from generate_series(1, 20000) i;
        insert into \"{schema}\".subjects
        select 's' || i, 1, gen_random_uuid() from generate_series(1, 20000) i;
        insert into \"{schema}\".jobs
        select gen_random_uuid(), 'default', 'k', 'standard', 1, 'waiting', 0, 0, now(), false, false,
          false, 0, 5, 0, 0, null, null, null, null, null, null, 0, false, 0, 0, now(), now(), null, null,
          '1', decode(repeat('00', 32), 'hex'), '', null, 's' || i % 100, i, null
        from generate_series(1, 20000) i;
        insert into \"{schema}\".outcomes select id from \"{schema}\".jobs;
        insert into \"{schema}\".tombstones
        select gen_random_uuid(), '', null, 'default', 's' || i % 100, i,
          decode(repeat('00', 32), 'hex'), 'succeeded', 1, null, null, now()
        from generate_series(1, 20000) i;
        analyze {}",
        CROWDED.map(|table| format!("\"{schema}\".{table}")).join(", ")
    );
    session.batch_execute(&text).await.expect("a crowd");
}

async fn plan(
    session: &Client,
    schema: &str,
    kinds: &str,
    statement: &str,
    values: &str,
) -> String {
    let statement = statement.replace("leasehold.", &format!("\"{schema}\"."));
    session
        .batch_execute(&format!("deallocate all; prepare hot ({kinds}) as {statement}"))
        .await
        .expect("prepared");
    let explain = format!("explain (costs off) execute hot ({values})");
    let lines = session.simple_query(&explain).await.expect("a plan");
    let line = |it: &SimpleQueryMessage| match it {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    lines.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// A statement, its parameters' types, values for them, and the indexes that it has to walk.
const TABLE: &[(&str, &str, &str, &[&str])] = &[
    (
        include_str!("../../src/sql/document_load.sql"),
        "text, text",
        "'n1', 'k1'",
        &["documents_pkey"],
    ),
    (
        include_str!("../../src/sql/document_lock.sql"),
        "text, text, timestamptz",
        "'n1', 'k1', null",
        &["documents_pkey"],
    ),
    (
        include_str!("../../src/sql/document_list.sql"),
        "text, text, text, text, timestamptz, bigint",
        "'n1', 'k1', '', 'k2', now(), 10",
        &["documents_pkey"],
    ),
    (
        include_str!("../../src/sql/blob_load.sql"),
        "text, text, timestamptz",
        "'n1', 'k1', now()",
        &["blobs_pkey"],
    ),
    (
        include_str!("../../src/sql/tokens_load.sql"),
        "text, timestamptz",
        "'b1', null",
        &["tokens_pkey"],
    ),
    (
        include_str!("../../src/sql/find_audit.sql"),
        "uuid, text, text, text, bigint",
        "'00000000-0000-0000-0000-000000000000', null, null, null, 10",
        &["audit_pkey"],
    ),
    (
        include_str!("../../src/sql/find_audit_about.sql"),
        "uuid, text, text, text, bigint",
        "'00000000-0000-0000-0000-000000000000', null, null, 'target 7', 10",
        &["audit_target"],
    ),
    (
        include_str!("../../src/sql/find_audit_by.sql"),
        "uuid, text, text, text, bigint",
        "'00000000-0000-0000-0000-000000000000', 'actor 7', null, null, 10",
        &["audit_actor"],
    ),
    (
        include_str!("../../src/sql/prune_blobs.sql"),
        "timestamptz, bigint",
        "now(), 10",
        &["blobs_expiring"],
    ),
    (
        include_str!("../../src/sql/prune_tokens.sql"),
        "timestamptz, bigint",
        "now(), 10",
        &["tokens_full"],
    ),
    (
        include_str!("../../src/sql/prune_records.sql"),
        "timestamptz, bigint",
        "now(), 10",
        &["records_expiring"],
    ),
    (
        include_str!("../../src/sql/prune_versions.sql"),
        "timestamptz, bigint",
        "now(), 10",
        &["documents_expiring"],
    ),
    (
        include_str!("../../src/sql/prune_documents.sql"),
        "timestamptz, bigint, timestamptz",
        "now(), 10, now()",
        &["documents_expiring"],
    ),
    (
        include_str!("../../src/sql/load_subject.sql"),
        "text, bigint",
        "'s1', 7",
        &["subjects_pkey", "jobs_subject", "tombstones_subject"],
    ),
];

/// Proves: IDM-4, REC-1
pub(crate) async fn records_and_reruns_walk_their_index(place: Place) {
    let _store = place.store().await;
    let session = place.session().await;
    crowd(&session, &place.schema).await;
    for mode in ["force_custom_plan", "force_generic_plan"] {
        session.batch_execute(&format!("set plan_cache_mode = {mode}")).await.expect("set");
        for (statement, kinds, values, wanted) in TABLE {
            let plan = plan(&session, &place.schema, kinds, statement, values).await;
            for wanted in *wanted {
                assert!(plan.contains(wanted), "{mode}\n{statement}\n{plan}\nlacks {wanted}");
            }
            assert!(!plan.contains("Seq Scan on"), "{mode}\n{statement}\n{plan}\nreads all");
        }
    }
}
