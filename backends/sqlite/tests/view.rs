//! Owns the proof that no conflict form of an insert into the SQL view takes back what is there.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod place;

use leasehold_core::{
    ClaimRequest, IdempotencyKey, JobKind, Json, NewJob, QueueName, Store, StoreExt, WorkerId,
};
use leasehold_sqlite::rusqlite::Connection;
use place::Place;

const FORMS: [&str; 6] = [
    "insert",
    "insert or replace",
    "replace",
    "insert or ignore",
    "insert or fail",
    "insert or rollback",
];

/// Proves: TX-8, IDM-1
#[tokio::test]
async fn replace_cannot_take_a_fence_back() {
    let place = Place::new("view-replace");
    let store = leasehold_sqlite::open(&place.url()).await.unwrap();
    let kind = JobKind::new("k").unwrap();
    let job = NewJob::new(kind, Json::null()).key(IdempotencyKey::new("one").unwrap());
    assert!(store.enqueue_one(job.clone()).await.unwrap().is_new());
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = store.claim(request).await.unwrap().remove(0);
    let conn = Connection::open(place.url()).unwrap();
    store.prepare_connection(&conn).unwrap();
    for form in FORMS {
        let insert = "into leasehold_enqueue (kind, payload, key) values ('k', '7', 'one')";
        conn.execute_batch(&format!("{form} {insert}")).unwrap();
    }
    let jobs: i64 =
        conn.query_row("select count(*) from leasehold_jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(jobs, 1, "one key is one job");
    store.succeed(claim.fence).await.unwrap();
    // A rolled back insert is none, and the store takes a job of the view's for its own request.
    let insert = "insert into leasehold_enqueue (kind, payload, key) values ('k', '7', 'two')";
    conn.execute_batch(&format!("begin; {insert}; rollback")).unwrap();
    conn.execute_batch(insert).unwrap();
    let again = NewJob::new(JobKind::new("k").unwrap(), Json::null());
    let again = store.enqueue_one(again.key(IdempotencyKey::new("two").unwrap())).await.unwrap();
    assert!(!again.is_new());
}

/// The view takes what the store takes: a name is no level, whatever stands in it, and an escaped backslash
/// begins no escape.
///
/// Proves: TX-8, PAR-3
#[tokio::test]
async fn payloads_are_judged_as_the_store_judges_them() {
    let place = Place::new("view-payloads");
    let store = leasehold_sqlite::open(&place.url()).await.unwrap();
    let conn = Connection::open(place.url()).unwrap();
    store.prepare_connection(&conn).unwrap();
    let nested = |name: &str, levels: usize| {
        format!("{}1{}", format!(r#"{{"{name}":"#).repeat(levels), "}".repeat(levels))
    };
    let mut texts: Vec<String> = ["a", ".", "[", "a.b[0].c", r#"\".[\""#, "\u{e9}.[\u{1f600}"]
        .iter()
        .flat_map(|name| [1, 60, 64, 65, 127, 128, 129, 200].map(|levels| nested(name, levels)))
        .collect();
    texts.push(format!(r#"{{"{}":[[1]]}}"#, ".[".repeat(500)));
    texts.push(format!(r#"[{}[[1]]{}]"#, "[".repeat(125), "]".repeat(125)));
    texts.push(format!(r#"[{}[[1]]{}]"#, "[".repeat(126), "]".repeat(126)));
    for before in ["", "a", r"\\", r"\\\\", r"\n", r"\ud83d", r"\ude00", r"\\\ud83d"] {
        for rest in [r"ud800", r"\ud800", r"\ud83d\ude00", r"\\ud800", r"\\\ud83d\ude00", r"\ude00"]
        {
            texts.push(format!(r#"["{before}{rest}"]"#));
            texts.push(format!(r#"{{"{before}{rest}":"\\"}}"#));
        }
    }
    let (mut taken, mut refused) = (0, 0);
    for text in texts {
        let insert = "insert into leasehold_enqueue (kind, payload) values ('k', ?1)";
        let answer = conn.execute(insert, [&text]);
        assert_eq!(answer.is_ok(), Json::parse(text.clone()).is_ok(), "{text}: {answer:?}");
        if answer.is_ok() { taken += 1 } else { refused += 1 }
    }
    assert!(taken > 60 && refused > 30, "{taken} taken, {refused} refused");
}
