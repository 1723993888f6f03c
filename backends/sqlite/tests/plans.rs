//! Owns the check that hot statements walk the index made for them and sort nothing.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use leasehold_sqlite::open;
use leasehold_sqlite::rusqlite::Connection;
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
        (include_str!("../src/sql/claim_again.sql"), "leasehold_jobs_leased (queue=?)"),
        (include_str!("../src/sql/expired_jobs.sql"), "leasehold_jobs_leased (queue=?)"),
        (include_str!("../src/sql/expired_jobs_all.sql"), "leasehold_jobs_leased"),
        (include_str!("../src/sql/count_leased.sql"), "leasehold_jobs_leased (queue=?)"),
        (include_str!("../src/sql/count_leased_all.sql"), "leasehold_jobs_leased"),
        (include_str!("../src/sql/clock_leased.sql"), "leasehold_jobs_leased"),
        (include_str!("../src/sql/clock_leased.sql"), "leasehold_events_leased"),
        (include_str!("../src/sql/stats_leased.sql"), "leasehold_jobs_leased"),
        (include_str!("../src/sql/expired_events.sql"), "leasehold_events_leased"),
        (include_str!("../src/sql/event_candidates.sql"), "leasehold_events_claimable (run_at<?)"),
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
