//! Owns the proof that an enqueue by statements equals the store's own, and that its races end in one
//! job. Refuses to know what the statements are.

use async_trait::async_trait;
use leasehold_conformance::statements::{RunsStatements, equal_enqueue};
use leasehold_core::lab::LabStore;
use leasehold_core::{IdempotencyKey, JobId, JobKind, Json, NewJob, Result, Statement, Value};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::Transaction;
use leasehold_postgres::tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::place::{Place, soon, until_blocked};

struct Beside {
    store: PostgresStore,
    place: Place,
}

type Answer = (String, JobId, Option<String>);

fn sent(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        Value::Int(it) => it,
        Value::Text(it) => it,
        Value::Bytes(it) => it,
        Value::Uuid(it) => it,
    }
}

async fn enqueue(tx: &Transaction<'_>, statements: Vec<Statement>) -> Answer {
    let mut answer = None;
    for statement in statements {
        let values: Vec<_> = statement.params.iter().map(sent).collect();
        if statement.answers {
            answer = Some(tx.query_one(&*statement.sql, &values).await.expect("an answer"));
        } else {
            tx.execute(&*statement.sql, &values).await.expect("executed");
        }
    }
    let row = answer.expect("one statement answers");
    (row.get("outcome"), JobId::from_uuid(row.get::<_, Uuid>("job")), row.get("state"))
}

#[async_trait]
impl RunsStatements for Beside {
    fn store(&self) -> &dyn LabStore {
        &self.store
    }

    fn enqueue_sql(&self, job: &NewJob) -> Result<Vec<Statement>> {
        self.store.enqueue_sql(job)
    }

    async fn run(&self, statements: Vec<Statement>) -> Answer {
        let mut session = self.place.session().await;
        let tx = session.transaction().await.expect("begun");
        let answer = enqueue(&tx, statements).await;
        tx.commit().await.expect("committed");
        answer
    }
}

/// Proves: TX-8, IDM-1
pub(crate) async fn equal_the_stores_own_enqueue(place: Place) {
    for seed in 0..3 {
        let (store, clock) = place.manual().await;
        let other = format!("{}_own", place.schema);
        let own = PostgresStore::lab(place.server(), &other, Some(clock.now())).await;
        let own = own.expect("a store");
        let beside = Beside { store, place: place.clone() };
        equal_enqueue(&beside, &own, seed).await.expect("no error");
    }
}

/// Proves: TX-8, IDM-1
pub(crate) async fn race_of_one_key_is_one_job(place: Place) {
    let store = place.store().await;
    let job = |payload: &str| {
        let kind = JobKind::new("race").expect("a kind");
        let job = NewJob::new(kind, Json::parse(payload).expect("JSON"));
        job.key(IdempotencyKey::new("one").expect("a key"))
    };
    let (first, same, other) = (job("1"), job("1"), job("2"));
    let mut session = place.session().await;
    let tx = session.transaction().await.expect("begun");
    assert_eq!(enqueue(&tx, store.enqueue_sql(&first).expect("valid")).await.0, "new");
    let late = [same, other].map(|job| {
        let (place, statements) = (place.clone(), store.enqueue_sql(&job).expect("valid"));
        tokio::spawn(async move {
            let mut session = place.session().await;
            let tx = session.transaction().await.expect("begun");
            let answer = enqueue(&tx, statements).await;
            tx.commit().await.expect("committed");
            answer
        })
    });
    until_blocked(&place.session().await, &place.schema, 2).await;
    tx.commit().await.expect("committed");
    let mut answers = Vec::new();
    for late in late {
        answers.push(soon("an answer", late).await.expect("no panic"));
    }
    let waiting = Some("waiting".to_owned());
    assert_eq!(answers[0], ("existing".to_owned(), first.id, waiting.clone()));
    assert_eq!(answers[1], ("conflict".to_owned(), first.id, waiting));
    assert_eq!(store.dump().await.expect("a dump").rows("jobs").len(), 1);
}

/// Tries an insert in a transaction of its own; how many rows it made.
async fn insert(session: &leasehold_postgres::tokio_postgres::Client, text: &str) -> Option<u64> {
    session.execute(text, &[]).await.ok()
}

/// Proves: TX-8, IDM-1
pub(crate) async fn view_takes_sound_jobs_only(place: Place) {
    let store = place.store().await;
    let session = place.session().await;
    let into = format!("insert into \"{}\".enqueue", place.schema);
    let good = [
        "(kind, payload) values ('k', '{\"a\": [\"\u{e9}\", \"\\ud83d\\ude00\"]}')",
        "(kind, payload, key, scope) values ('k', '1', 'one', 's')",
        "(queue, kind, payload, priority, run_at, max_attempts) values ('q', 'k', '2', -5, now(), 3)",
    ];
    for values in good {
        assert_eq!(insert(&session, &format!("{into} {values}")).await, Some(1), "{values}");
    }
    let again = format!("{into} (kind, payload, key, scope) values ('k', '7', 'one', 's')");
    assert_eq!(insert(&session, &again).await, Some(0), "the key is taken");
    let bad = [
        "(kind) values ('k')",
        "(payload) values ('1')",
        "(kind, payload) values ('', '1')",
        "(kind, payload) values ('\u{e4}', '1')",
        "(kind, payload) values ('k', '{\"a\":1,\"\\u0061\":2}')",
        "(kind, payload) values ('k', '[\"\\ud800\"]')",
        "(kind, payload) values ('k', '{')",
        "(kind, payload) values ('k', repeat('[', 129) || repeat(']', 129))",
        "(kind, payload) values ('k', repeat('[', 100000) || repeat(']', 100000))",
        "(kind, payload) values ('k', '\"' || repeat('x', 1048577) || '\"')",
        "(kind, payload, priority) values ('k', '1', 40000)",
        "(kind, payload, max_attempts) values ('k', '1', 0)",
        "(kind, payload, run_at) values ('k', '1', 'infinity')",
        "(kind, payload, run_at) values ('k', '1', '1900-01-01')",
        "(kind, payload, scope) values ('k', '1', 's')",
        "(kind, payload, key) values ('k', '1', '')",
        "(kind, payload) values ('k', '1') on conflict (kind) do update set kind = 'x'",
    ];
    for values in bad {
        assert_eq!(insert(&session, &format!("{into} {values}")).await, None, "{values}");
    }
    let rolled_back = format!("begin; {into} (kind, payload) values ('k', '1'); rollback");
    session.batch_execute(&rolled_back).await.expect("rolled back");
    let dump = store.dump().await.expect("a dump");
    assert_eq!(dump.rows("jobs").len(), 3);
    assert_eq!(dump.rows("keys").len(), 1);
    let queues = ["default", "q"].map(crate::place::queue);
    let request = leasehold_core::ClaimRequest::new(leasehold_core::WorkerId::new(), queues);
    let claims = leasehold_core::Store::claim(&store, request.limit(9)).await.expect("claims");
    assert_eq!(claims.len(), 3, "each is readable and found by a worker");
}

/// An inserter with no right but to insert puts types of its own in the way of the system's.
///
/// Proves: TX-8
pub(crate) async fn view_runs_nothing_of_the_inserters(place: Place) {
    let store = place.store().await;
    let session = place.session().await;
    let schema = &place.schema;
    let begin = format!(
        "create role \"app of {schema}\"; grant usage on schema \"{schema}\" to \"app of {schema}\";
         grant insert on \"{schema}\".enqueue to \"app of {schema}\";
         set session authorization \"app of {schema}\";
         create temp table ran (as_whom text);
         create function pg_temp.spy(value text) returns boolean language plpgsql
         as $$ begin insert into pg_temp.ran values (current_user); return true; end $$"
    );
    session.batch_execute(&begin).await.expect("a role and its trap");
    for name in ["jsonb", "json", "text", "timestamptz", "bytea", "uuid"] {
        let trap =
            format!("create domain pg_temp.{name} as pg_catalog.text check (pg_temp.spy(value))");
        session.batch_execute(&trap).await.expect("a type of its own");
    }
    let into = format!("insert into \"{schema}\".enqueue (kind, payload) values");
    assert_eq!(insert(&session, &format!("{into} ('k', '[1]')")).await, Some(1));
    assert_eq!(insert(&session, &format!("{into} ('k', '[\"\\ud800\"]')")).await, None);
    let ran = session.query_one("select count(*) from pg_temp.ran", &[]).await.expect("a count");
    assert_eq!(ran.get::<_, i64>(0), 0, "the inserter's code ran");
    for text in [
        format!("select * from \"{schema}\".jobs"),
        format!("insert into \"{schema}\".queues (name) values ('q')"),
        format!("delete from \"{schema}\".enqueue"),
        format!("update \"{schema}\".enqueue set kind = 'x'"),
    ] {
        session.batch_execute(&text).await.expect_err(&text);
    }
    let end = format!(
        "reset session authorization; drop owned by \"app of {schema}\"; drop role \"app of {schema}\""
    );
    session.batch_execute(&end).await.expect("the role is gone");
    assert_eq!(store.dump().await.expect("a dump").rows("jobs").len(), 1);
}
