//! Owns a schema of one test, the sessions beside the store, and jobs to play with.

use std::time::Duration;

use leasehold_core::lab::{LabStore, ManualClock};
use leasehold_core::{
    Claim, ClaimRequest, IdempotencyKey, JobKind, Json, NewJob, QueueName, Store, Timestamp,
    WorkerId,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, NoTls};

/// A server and a schema on it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    server: String,
    pub(crate) schema: String,
}

impl Place {
    pub(crate) fn new(server: &str, story: &str) -> Self {
        let (_, name) = story.split_once("::").expect("a module");
        let name: String = name.chars().take(30).collect();
        Self { server: server.to_owned(), schema: format!("{name}_{}", std::process::id()) }
    }

    /// The server, with more parameters.
    pub(crate) fn url(&self, parameters: &str) -> String {
        let join = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{join}schema={}{parameters}", self.server, self.schema)
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// A store on the server's clock, in a fresh schema.
    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::lab(&self.server, &self.schema, None).await.expect("a store")
    }

    /// A store on a manual clock, in a fresh schema.
    pub(crate) async fn manual(&self) -> (PostgresStore, ManualClock) {
        let start = Timestamp::saturating(1_800_000_000_000_000);
        let store = PostgresStore::lab(&self.server, &self.schema, Some(start)).await;
        let store = store.expect("a store");
        let clock = store.clock().expect("a manual clock");
        (store, clock)
    }

    /// A session of somebody else's.
    pub(crate) async fn session(&self) -> Client {
        let (client, connection) = leasehold_postgres::tokio_postgres::connect(&self.server, NoTls)
            .await
            .expect("a session");
        tokio::spawn(connection);
        client
    }
}

pub(crate) fn key() -> IdempotencyKey {
    IdempotencyKey::new("order-7").expect("a key")
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue's name")
}

pub(crate) fn job(number: usize) -> NewJob {
    let payload = Json::parse(format!("{{\"number\":{number}}}")).expect("JSON");
    NewJob::new(JobKind::new("resize").expect("a kind"), payload)
}

/// Enqueues jobs to the default queue.
pub(crate) async fn fill(store: &PostgresStore, jobs: usize) {
    let answers = store.enqueue((0..jobs).map(job).collect()).await.expect("enqueued");
    assert!(answers.iter().all(Result::is_ok));
}

pub(crate) fn request(limit: usize) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(limit)
}

/// Claims so many jobs of the default queue.
pub(crate) async fn take(store: &PostgresStore, jobs: usize) -> Vec<Claim> {
    let claims = store.claim(request(jobs)).await.expect("claimed");
    assert_eq!(claims.len(), jobs);
    claims
}

/// Waits for something that has to come soon.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), coming).await.unwrap_or_else(|_| {
        panic!("{what} did not come");
    })
}

/// Waits until so many sessions wait for another's lock.
pub(crate) async fn until_blocked(session: &Client, schema: &str, sessions: i64) {
    let text =
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
    let pattern = format!("%\"{schema}\"%");
    let blocked = async {
        loop {
            let row = session.query_one(text, &[&pattern]).await.expect("an answer");
            if row.get::<_, i64>(0) >= sessions {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a lock wait", blocked).await;
}
