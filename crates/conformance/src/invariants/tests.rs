use std::time::Duration;

use leasehold_core::lab::{Cell, Dump, LabStore, TABLES};
use leasehold_core::memory::MemoryStore;
use leasehold_core::{
    ClaimRequest, Failure, FailureCode, IdempotencyKey, JobId, JobKind, Json, NewJob, QueueName,
    Settlement, Store, StoreExt, Timestamp, Verdict, WorkerId,
};
use uuid::Uuid;

use super::{beyond_added, broken};

fn job(number: u8) -> NewJob {
    let job = NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
    job.key(IdempotencyKey::new(format!("key {number}")).expect("a key"))
}

/// A store with a job in each state but one.
async fn sound() -> Dump {
    let store = MemoryStore::lab(Timestamp::saturating(1_800_000_000_000_000));
    for number in 0..5 {
        assert!(store.enqueue_one(job(number)).await.expect("enqueued").is_new());
    }
    let late = job(9).delay(Duration::from_secs(60));
    assert!(store.enqueue_one(late).await.expect("enqueued").is_new());
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(4);
    let claims = store.claim(request).await.expect("claimed");
    store.succeed(claims[0].fence).await.expect("settled");
    for (claim, dead) in claims[1..3].iter().zip([true, false]) {
        let failure = Failure::new(FailureCode::InvariantBroken, "no");
        let verdict = match dead {
            true => Verdict::DeadLetter { failure },
            false => Verdict::Fail { failure },
        };
        store.settle(vec![Settlement::new(claim.fence, verdict)]).await.expect("settled");
    }
    store.dump().await.expect("a dump")
}

/// The same with one cell changed, in the first row of a table of which `picks` is true.
fn changed(dump: &Dump, table: &str, picks: (&str, Cell), column: &str, cell: Cell) -> Dump {
    let mut other = Dump::default();
    let mut done = false;
    for name in TABLES {
        for row in dump.cells(name) {
            let mut row = row.clone();
            if name == table && !done && row.get(picks.0) == Some(&picks.1) {
                done = true;
                assert!(row.insert(column.to_owned(), cell.clone()).is_some(), "no {column}");
            }
            other.add(name, row);
        }
    }
    assert!(done, "no such row of {table}");
    other
}

fn word(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// Proves: TX-8
#[tokio::test]
async fn a_sound_store_breaks_nothing_and_each_damage_is_told() {
    let sound = sound().await;
    assert_eq!(broken(&sound), Vec::<String>::new());
    let stranger = Cell::Id(Uuid::from_u128(0xdead));
    let payloads = if sound.cells("requests").is_empty() { "jobs" } else { "requests" };
    let table = [
        ("jobs", "waiting", "queue", word("elsewhere"), "its queue is not there"),
        ("jobs", "waiting", "kind", word(""), "the kind has no name"),
        ("jobs", "waiting", "state", word("leased"), "a lease and its state"),
        ("jobs", "leased", "state", word("succeeded"), "an end and its state"),
        ("jobs", "leased", "claim_id", Cell::Null, "no claim"),
        ("jobs", "succeeded", "claim_id", Cell::Null, "begun without a claim"),
        ("jobs", "succeeded", "finished_at", Cell::Null, "an end and its state"),
        ("jobs", "succeeded", "held", Cell::Int(1), "held, but not waiting"),
        ("jobs", "failed", "state", word("dead_letter"), "no dead letter"),
        ("jobs", "waiting", "revision", Cell::Int(99), "its lifecycle is not registered"),
        ("jobs", "waiting", "attempts_max", Cell::Int(0), "an impossible budget"),
        ("jobs", "waiting", "run_at", Cell::Int(-1), "an impossible time"),
        ("jobs", "waiting", "priority", Cell::Int(40_000), "an impossible priority"),
    ];
    for (name, state, column, cell, why) in table {
        let damaged = changed(&sound, name, ("state", word(state)), column, cell);
        let said = broken(&damaged);
        assert!(
            said.iter().any(|line| line.starts_with(why)),
            "{column} of a {state} job: {said:?}"
        );
    }
    let table = [
        (payloads, "payload", word("{"), "the payload is no document"),
        (payloads, "scope", word("\n"), "the scope is none"),
        (payloads, "key", word("key 8"), "a key of another's"),
        ("keys", "key", word("key 8"), "a key of another's"),
        ("keys", "key", word("key 1"), "a key that stands twice"),
    ];
    for (name, column, cell, why) in table {
        let said = broken(&changed(&sound, name, ("key", word("key 0")), column, cell));
        assert!(said.iter().any(|line| line.starts_with(why)), "{column} of {name}: {said:?}");
    }
    let (table, column) =
        if payloads == "jobs" { ("outcomes", "job_id") } else { ("requests", "job_id") };
    let first = sound.cells(table)[0].get(column).expect("a job").clone();
    let said = broken(&changed(&sound, table, (column, first), column, stranger));
    assert!(!said.is_empty(), "a row of {table} without its job");
}

/// Proves: TX-8
#[tokio::test]
async fn what_an_enqueue_never_does_is_told() {
    let before = sound().await;
    let mut after = before.clone();
    let id = Cell::Id(JobId::new().as_uuid());
    after.add("jobs", [("id".to_owned(), id.clone())]);
    assert_eq!(beyond_added(&before, &after), Vec::<String>::new());
    after.add("transitions", [("job_id".to_owned(), id)]);
    assert_eq!(beyond_added(&before, &after).len(), 1);
    let rewound =
        changed(&before, "jobs", ("state", word("leased")), "claim_version", Cell::Int(0));
    assert!(!beyond_added(&before, &rewound).is_empty());
}
