//! Owns the check that hot statements walk the index made for them and sort nothing.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use leasehold_core::{Error, ErrorKind};
use leasehold_sqlite::open;
use leasehold_sqlite::rusqlite::{Connection, StatementStatus, Transaction};
use place::Place;

/// The plan's lines; parameters stay unbound, so no plan rests on their values.
fn plan(conn: &Connection, statement: &str) -> String {
    let mut explained =
        conn.prepare(&format!("explain query plan {statement}")).expect("a statement");
    let mut rows = explained.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().expect("a plan") {
        lines.push(row.get::<_, String>(3).expect("a line"));
    }
    lines.join("\n")
}

/// Proves: WQ-3
#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_walk_their_index() {
    let place = Place::new("plans");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let table = [
        (
            include_str!("../src/sql/claim.sql"),
            "leasehold_jobs_claimable (queue=? AND priority=? AND run_at<?)",
        ),
        (
            include_str!("../src/sql/claim_priority.sql"),
            "COVERING INDEX leasehold_jobs_claimable (queue=? AND priority<?)",
        ),
        (include_str!("../src/sql/claim_again.sql"), "leasehold_jobs_listed (state=? AND queue=?)"),
        (
            include_str!("../src/sql/expired_jobs.sql"),
            "leasehold_jobs_listed (state=? AND queue=?)",
        ),
        (include_str!("../src/sql/expired_jobs_all.sql"), "leasehold_jobs_listed (state=?"),
        (
            include_str!("../src/sql/count_leased.sql"),
            "leasehold_jobs_listed (state=? AND queue=?)",
        ),
        (include_str!("../src/sql/count_leased_all.sql"), "leasehold_jobs_listed (state=?"),
        (include_str!("../src/sql/clock_leased.sql"), "leasehold_jobs_listed (state=?"),
        (include_str!("../src/sql/clock_leased.sql"), "leasehold_events_listed (state=?"),
        (include_str!("../src/sql/stats_leased.sql"), "leasehold_jobs_listed (state=?"),
        (include_str!("../src/sql/succeed_jobs.sql"), "leasehold_jobs USING PRIMARY KEY (id=?)"),
        (include_str!("../src/sql/end_jobs.sql"), "leasehold_jobs USING PRIMARY KEY (id=?)"),
        (include_str!("../src/sql/claim_jobs.sql"), "leasehold_jobs USING PRIMARY KEY (id=?)"),
        (include_str!("../src/sql/expired_events.sql"), "leasehold_events_listed (state=?"),
        (include_str!("../src/sql/event_claim_again.sql"), "leasehold_events_listed (state=?"),
        (
            include_str!("../src/sql/event_candidates.sql"),
            "leasehold_events_claimable (topic=? AND run_at<?)",
        ),
        (
            include_str!("../src/sql/event_candidates.sql"),
            "leasehold_events_undelivered (ordering=? AND order_key=? AND sequence<?)",
        ),
        (include_str!("../src/sql/event_is_first.sql"), "leasehold_events_undelivered (ordering=?"),
        (
            include_str!("../src/sql/prune_jobs.sql"),
            "leasehold_jobs_ended (queue=? AND state=? AND finished_at>? AND finished_at<?)",
        ),
        (include_str!("../src/sql/stats_waiting.sql"), "COVERING INDEX leasehold_jobs_claimable"),
        (include_str!("../src/sql/stats_outbox.sql"), "COVERING INDEX leasehold_events_listed"),
        (include_str!("../src/sql/stats_delivered.sql"), "COVERING INDEX leasehold_events_listed"),
        (include_str!("../src/sql/stats_ended.sql"), "COVERING INDEX leasehold_jobs_ended"),
    ];
    for (statement, wanted) in table {
        let plan = plan(&conn, statement);
        assert!(plan.contains(wanted), "{statement}\n{plan}\nlacks {wanted}");
    }
    for statement in [
        include_str!("../src/sql/claim.sql"),
        include_str!("../src/sql/claim_priority.sql"),
        include_str!("../src/sql/event_candidates.sql"),
        include_str!("../src/sql/prune_jobs.sql"),
    ] {
        let plan = plan(&conn, statement);
        assert!(!plan.contains("TEMP B-TREE"), "{statement}\n{plan}\nsorts");
    }
}

/// Proves: FAN-2, FAN-4
#[tokio::test(flavor = "multi_thread")]
async fn statements_of_waits_walk_their_index() {
    let place = Place::new("wait-plans");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let table = [
        (include_str!("../src/sql/prune_jobs.sql"), "leasehold_waits_parent (parent_id=?)"),
        (include_str!("../src/sql/load_waits.sql"), "leasehold_waits_parent (parent_id=?)"),
        (include_str!("../src/sql/load_blocked.sql"), "leasehold_waits_open (job_id=?)"),
        (include_str!("../src/sql/find_parents.sql"), "PRIMARY KEY (job_id=? AND parent_id>?)"),
        (
            include_str!("../src/sql/find_children.sql"),
            "leasehold_waits_parent (parent_id=? AND job_id>?)",
        ),
        (include_str!("../src/sql/count_parents.sql"), "PRIMARY KEY (job_id=?)"),
        (include_str!("../src/sql/prune_wait.sql"), "PRIMARY KEY (job_id=?)"),
        (include_str!("../src/sql/stats_blocked.sql"), "leasehold_jobs_held"),
    ];
    for (statement, wanted) in table {
        let plan = plan(&conn, statement);
        assert!(plan.contains(wanted), "{statement}\n{plan}\nlacks {wanted}");
        let pages = statement.contains("limit ?3");
        assert!(!pages || !plan.contains("TEMP B-TREE"), "{statement}\n{plan}\nsorts");
    }
}

/// Proves: IDM-4, REC-1
#[tokio::test(flavor = "multi_thread")]
async fn statements_of_records_and_reruns_walk_their_index() {
    let place = Place::new("record-plans");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let name = "(namespace=? AND key=?)";
    let table: [(&str, &[&str]); 15] = [
        (include_str!("../src/sql/document_load.sql"), &[name]),
        (include_str!("../src/sql/document_list.sql"), &["(namespace=? AND key>? AND key<?)"]),
        (include_str!("../src/sql/blob_load.sql"), &[name]),
        (include_str!("../src/sql/blob_delete.sql"), &[name]),
        (include_str!("../src/sql/once_load.sql"), &["(scope=? AND key=?)"]),
        (include_str!("../src/sql/tokens_load.sql"), &["(bucket=?)"]),
        (include_str!("../src/sql/find_audit.sql"), &["(id>?)"]),
        (include_str!("../src/sql/find_audit_about.sql"), &["audit_target (target=? AND id>?)"]),
        (include_str!("../src/sql/find_audit_by.sql"), &["audit_actor (actor=? AND id>?)"]),
        (include_str!("../src/sql/prune_documents.sql"), &["documents_expiring (expires_at"]),
        (include_str!("../src/sql/prune_versions.sql"), &["documents_expiring (expires_at"]),
        (include_str!("../src/sql/prune_blobs.sql"), &["blobs_expiring (expires_at"]),
        (include_str!("../src/sql/prune_tokens.sql"), &["tokens_full (full_at<?)"]),
        (include_str!("../src/sql/prune_records.sql"), &["records_expiring (expires_at<?)"]),
        (
            include_str!("../src/sql/load_subject.sql"),
            &[
                "leasehold_subjects_1 (name=?)",
                "jobs_subject (subject=? AND subject_version=?)",
                "jobs_subject (subject=? AND subject_version>?)",
                "tombstones_subject (subject=? AND subject_version=?)",
                "tombstones_subject (subject=? AND subject_version>?)",
            ],
        ),
    ];
    for (statement, wanted) in table {
        let plan = plan(&conn, statement);
        for wanted in wanted {
            assert!(plan.contains(wanted), "{statement}\n{plan}\nlacks {wanted}");
        }
        let reads_all = plan.lines().any(|line| line.starts_with("SCAN leasehold_"));
        assert!(!reads_all, "{statement}\n{plan}\nreads all");
    }
}

/// Proves: QUE-8
#[tokio::test(flavor = "multi_thread")]
async fn statements_of_partitions_walk_their_index() {
    let place = Place::new("partition-plans");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let in_turn = "leasehold_jobs_in_turn (queue=? AND partition=? AND priority";
    let table: [(&str, &[&str]); 7] = [
        (include_str!("../src/sql/claim_in.sql"), &[in_turn]),
        (include_str!("../src/sql/claim_below.sql"), &[in_turn]),
        (
            include_str!("../src/sql/partitions.sql"),
            &[
                "COVERING INDEX leasehold_jobs_in_turn (queue=? AND partition>?)",
                "leasehold_jobs_leased_in (queue=? AND partition=?)",
                "starts_1 (queue=? AND partition=?)",
            ],
        ),
        (
            include_str!("../src/sql/shared_queues.sql"),
            &["leasehold_jobs_in_turn (queue=?", "leasehold_jobs_leased_in (queue=?"],
        ),
        (include_str!("../src/sql/load_turn.sql"), &["leasehold_turns_1 (queue=?)"]),
        (include_str!("../src/sql/control_starts.sql"), &["leasehold_starts_1 (queue=?)"]),
        (include_str!("../src/sql/prune_starts.sql"), &["leasehold_starts_full (full_at<?)"]),
    ];
    for (statement, wanted) in table {
        let plan = plan(&conn, statement);
        for wanted in wanted {
            assert!(plan.contains(wanted), "{statement}\n{plan}\nlacks {wanted}");
        }
        let bad = |line: &str| line.contains("SCAN leasehold_") || line.contains("TEMP B-TREE");
        assert!(!plan.lines().any(bad), "{statement}\n{plan}\nreads or sorts all");
    }
}

/// Every statement of the crate by its file's name.
fn statements() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql");
    let files = std::fs::read_dir(folder).expect("the statements");
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("a statement"))
    };
    files.map(|file| read(file.expect("a file").path())).collect()
}

/// The statements that were planned again when their parameters changed.
fn planned_again(conn: &Connection) -> Vec<String> {
    let mut again = Vec::new();
    for (name, text) in statements() {
        // A check of a copy runs once for each copy, and has no values.
        if name.starts_with("migrate_") || name.starts_with("lab_") || name == "check_copy" {
            continue;
        }
        let mut statement = conn.prepare(&text).expect(&name);
        for value in 1..=3 {
            for at in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(at, value).expect("a parameter");
            }
            // Many values are refused by the tables; the plan is made before that.
            let mut rows = statement.raw_query();
            while let Ok(Some(_)) = rows.next() {}
        }
        if statement.get_status(StatementStatus::RePrepare) > 0 {
            again.push(name);
        }
    }
    again
}

/// A plan that rests on a parameter's value is made again for each new value, which costs many times
/// the statement itself.
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_is_planned_again_for_new_values() {
    let place = Place::new("replans");
    let store = open(&place.url()).await.expect("new");
    let (tell, told) = std::sync::mpsc::channel();
    let look = move |tx: &Transaction<'_>| {
        tell.send(planned_again(tx)).expect("a listener");
        Err::<(), _>(Error::new(ErrorKind::Invalid, "look", "nothing is to be kept"))
    };
    store.transaction(look).await.expect_err("rolled back");
    assert_eq!(told.recv().expect("a look"), Vec::<String>::new());
}
