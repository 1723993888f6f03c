//! Owns the proof that inserts into the SQL view, hostile ones included, leave only sound jobs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod place;

use leasehold_core::{ClaimRequest, PruneRequest, QueueName, Store, StoreExt, WorkerId};
use leasehold_core::{IdempotencyKey, JobKind, Json, NewJob};
use leasehold_sqlite::rusqlite::Connection;
use place::Place;

/// A small generator of its own, so that a seed means the same on every version of a crate.
struct Dice(u64);

impl Dice {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from[usize::try_from(self.0 % from.len() as u64).unwrap()]
    }
}

const QUEUES: [&str; 9] =
    ["null", "'default'", "'q'", "''", "7", "x'71'", "'ä'", "char(0)", "hex(zeroblob(200))"];
const KINDS: [&str; 6] = ["'k'", "'k'", "'k'", "null", "cast(x'6bff' as text)", "'a' || char(10)"];
const PAYLOADS: [&str; 18] = [
    "'null'",
    "'{\"a\": [1, 2.5e3]}'",
    "'[\"\u{e9}\u{1f600}\"]'",
    "'[\"\\ud83d\\ude00\"]'",
    "null",
    "x'7b7d'",
    "5",
    "'{'",
    "'01'",
    "'{\"a\":1,\"\\u0061\":2}'",
    "'[\"\\ud800\"]'",
    "'[\"\\\\ud83d\\ude00\"]'",
    "cast(x'22ed80a022' as text)",
    "cast(x'22c3' as text)",
    "'[1]' || char(0)",
    "replace(hex(zeroblob(64)), '0', '[') || replace(hex(zeroblob(64)), '0', ']')",
    "replace(hex(zeroblob(65)), '0', '[') || replace(hex(zeroblob(65)), '0', ']')",
    "'\"' || hex(zeroblob(600000)) || '\"'",
];
const KEYS: [&str; 8] = ["null", "null", "'one'", "'two'", "''", "3", "x'00'", "'\u{1}'"];
const SCOPES: [&str; 5] = ["null", "''", "'s'", "1", "x'00'"];
const PRIORITIES: [&str; 7] = ["null", "-5", "32767", "40000", "'high'", "1.5", "1e300"];
const TIMES: [&str; 6] = ["null", "0", "1", "-1", "9223372036854775807", "'now'"];
const ATTEMPTS: [&str; 5] = ["null", "1", "65535", "0", "x''"];
const FORMS: [&str; 6] = [
    "insert",
    "insert or replace",
    "replace",
    "insert or ignore",
    "insert or fail",
    "insert or rollback",
];

fn hostile(dice: &mut Dice) -> String {
    // Most columns are well chosen most of the time, or nothing would ever get in.
    let mut column = |all: &[&'static str]| {
        let well = dice.pick(&["well", "well", "well", "ill"]) == "well";
        dice.pick(if well { &all[..2] } else { all })
    };
    let columns = [
        column(&QUEUES),
        column(&KINDS),
        column(&PAYLOADS),
        column(&SCOPES),
        column(&KEYS),
        column(&PRIORITIES),
        column(&TIMES),
        column(&ATTEMPTS),
    ];
    let into = "into leasehold_enqueue (queue, kind, payload, scope, key, priority, run_at, \
                max_attempts) values";
    let end = dice.pick(&["", "", " returning kind"]);
    format!("{} {into} ({}){end}", dice.pick(&FORMS), columns.join(", "))
}

/// Proves: TX-8
#[tokio::test]
async fn hostile_inserts_break_nothing() {
    let number = std::env::var("LEASEHOLD_HOSTILE_INSERTS").ok();
    let number: u32 = number.map_or(2_000, |text| text.parse().unwrap());
    let place = Place::new("view-hostile");
    let store = leasehold_sqlite::open(&place.url()).await.unwrap();
    let conn = Connection::open(place.url()).unwrap();
    store.prepare_connection(&conn).unwrap();
    let mut dice = Dice(0x5eed_1234_5678_9abc);
    let mut taken = 0;
    for _ in 0..number {
        let text = hostile(&mut dice);
        let done = conn.execute_batch(&text);
        taken += u32::from(done.is_ok());
    }
    assert!(taken > number / 20 && taken < number, "{taken} of {number} were taken");
    let count = |what: &str| conn.query_row(what, [], |row| row.get::<_, i64>(0)).unwrap();
    let jobs = count("select count(*) from leasehold_jobs");
    assert_eq!(jobs, count("select count(*) from leasehold_v_jobs"), "each has its request");
    assert_eq!(jobs, count("select count(*) from leasehold_requests"), "no request is left over");
    let orphans = "select count(*) from leasehold_keys k left join leasehold_requests r \
                   on r.job_id = k.job_id and r.key = k.key and r.scope = k.scope \
                   where r.job_id is null";
    assert_eq!(count(orphans), 0, "each key is its job's");
    let lost = "select count(*) from leasehold_jobs where queue not in (select name from leasehold_queues)";
    assert_eq!(count(lost), 0, "each job's queue is there");
    let queues = [QueueName::default_queue(), QueueName::new("q").unwrap()];
    let worker = WorkerId::new();
    let mut ended = 0;
    loop {
        let request = ClaimRequest::new(worker, queues.clone()).limit(500);
        let claims = store.claim(request).await.unwrap();
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            store.succeed(claim.fence).await.unwrap();
            ended += 1;
        }
    }
    let open = "select count(*) from leasehold_jobs where state <> 'succeeded' and queue in ('default', 'q')";
    assert_eq!(count(open), 0, "each job is readable and is claimed");
    assert!(ended > 0, "jobs came in");
    store.prune(PruneRequest::default()).await.unwrap();
}

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
