//! What every host library is put through: jobs enqueued by statements, in a transaction of the library's
//! own and beside a row of the user's own. Knows no engine and no driver.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::{
    ClaimRequest, IdempotencyKey, JobId, JobKind, Json, LifecycleName, NewJob, QueueName, Scope,
    State, Statement, Store, StoreExt, Timestamp, WorkerId,
};

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    RollBack,
    /// The user's own row is inserted a second time, and the library's transaction ends by the error.
    Fail,
}

/// The row that one of the statements gives.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub outcome: String,
    pub job: JobId,
    pub state: Option<String>,
}

/// A host library with its own connection to the store's database, and a table `orders` of its own.
#[allow(async_fn_in_trait)]
pub trait Host {
    /// In one transaction: inserts the order, runs the statements in their order, and ends as told.
    async fn order(
        &mut self,
        number: i64,
        statements: &[Statement],
        end: End,
    ) -> Result<Answer, String>;

    /// The numbers of all orders, in order.
    async fn orders(&mut self) -> Vec<i64>;
}

fn named_server() -> String {
    std::env::var("LEASEHOLD_TEST_POSTGRES_URL")
        .expect("LEASEHOLD_TEST_POSTGRES_URL names no server; run scripts/hosts")
}

/// The server's URL, or a failure: an engine that is not there is no pass.
pub fn server() -> String {
    // Some libraries ask for a host even where the query names the folder of a socket.
    named_server().replacen("@/", "@localhost/", 1)
}

/// The store's URL on the server, in a schema of this host's.
pub fn store_url(host: &str) -> String {
    let server = named_server();
    let join = if server.contains('?') { '&' } else { '?' };
    format!("{server}{join}schema=leasehold_{host}&migrate=auto&pool_size=2")
}

/// A SQLite file of this host's; none is there yet.
pub fn file(host: &str) -> PathBuf {
    let folder = std::env::var_os("LEASEHOLD_TEST_DIR").map_or_else(std::env::temp_dir, Into::into);
    let path = folder.join(format!("leasehold-{host}-{}.db", std::process::id()));
    for end in ["", "-wal", "-shm"] {
        let _absent = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    path
}

/// What gives the statements of a job: `enqueue_sql` of a store.
pub type Statements<'a> = &'a dyn Fn(&NewJob) -> leasehold::Result<Vec<Statement>>;

fn job(number: i64) -> NewJob {
    let payload = Json::parse(format!("{{\"number\": {number}, \"text\": \"\u{e9}\u{1f600}\"}}"));
    NewJob::new(JobKind::new("invoice").expect("a kind"), payload.expect("JSON"))
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).expect("a key")
}

fn answer(outcome: &str, job: JobId, state: Option<&str>) -> Answer {
    Answer { outcome: outcome.to_owned(), job, state: state.map(str::to_owned) }
}

/// Plays the whole story.
pub async fn play(host: &mut impl Host, store: &dyn Store, statements: Statements<'_>) {
    committed_job_is_claimed(host, store, statements).await;
    rolled_back_job_is_nothing(host, store, statements).await;
    known_key_is_answered(host, store, statements).await;
    refusals_write_nothing_and_raise_nothing(host, store, statements).await;
    every_column_arrives(host, store, statements).await;
}

/// The jobs a worker finds now; each is ended.
async fn work(store: &dyn Store) -> Vec<(JobId, Json)> {
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(10);
    let mut found = Vec::new();
    for claim in store.claim(request).await.expect("claims") {
        store.succeed(claim.fence).await.expect("settled");
        found.push((claim.job.id, claim.job.payload));
    }
    found
}

async fn committed_job_is_claimed(
    host: &mut impl Host,
    store: &dyn Store,
    statements: Statements<'_>,
) {
    let job = job(1);
    let told = host.order(1, &statements(&job).expect("valid"), End::Commit).await;
    assert_eq!(told, Ok(answer("new", job.id, Some("waiting"))));
    assert_eq!(host.orders().await, [1]);
    assert_eq!(work(store).await, [(job.id, job.payload)]);
}

async fn rolled_back_job_is_nothing(
    host: &mut impl Host,
    store: &dyn Store,
    statements: Statements<'_>,
) {
    let job = job(2).key(key("order 2"));
    let texts = statements(&job).expect("valid");
    let told = host.order(2, &texts, End::RollBack).await;
    assert_eq!(told, Ok(answer("new", job.id, Some("waiting"))), "it was there inside");
    host.order(2, &texts, End::Fail).await.expect_err("the order stands twice");
    assert_eq!(host.orders().await, [1]);
    assert_eq!(store.job(job.id).await.expect("read"), None);
    assert_eq!(work(store).await, []);
    let told = host.order(2, &texts, End::Commit).await;
    assert_eq!(told, Ok(answer("new", job.id, Some("waiting"))), "its key is free");
    assert_eq!(work(store).await, [(job.id, job.payload)]);
    assert_eq!(host.orders().await, [1, 2]);
}

async fn known_key_is_answered(
    host: &mut impl Host,
    store: &dyn Store,
    statements: Statements<'_>,
) {
    let first = job(3).key(key("order 3"));
    let told = host.order(3, &statements(&first).expect("valid"), End::Commit).await;
    assert_eq!(told, Ok(answer("new", first.id, Some("waiting"))));
    let same = statements(&job(3).key(key("order 3"))).expect("valid");
    let told = host.order(4, &same, End::Commit).await;
    assert_eq!(told, Ok(answer("existing", first.id, Some("waiting"))));
    let other = statements(&job(5).key(key("order 3"))).expect("valid");
    let told = host.order(5, &other, End::Commit).await;
    assert_eq!(told, Ok(answer("conflict", first.id, Some("waiting"))));
    // Neither is an error of the database, so the user's own rows stand.
    assert_eq!(host.orders().await, [1, 2, 3, 4, 5]);
    assert_eq!(work(store).await, [(first.id, first.payload)]);
    let told = host.order(6, &same, End::Commit).await;
    assert_eq!(told, Ok(answer("existing", first.id, Some("succeeded"))));
    // The store's own enqueue knows it too.
    let again = store.enqueue_one(job(3).key(key("order 3"))).await.expect("known");
    assert_eq!((again.is_new(), again.job()), (false, first.id));
}

async fn refusals_write_nothing_and_raise_nothing(
    host: &mut impl Host,
    store: &dyn Store,
    statements: Statements<'_>,
) {
    let strange = job(7).lifecycle(LifecycleName::new("nobody_knows").expect("a name"));
    let told = host.order(7, &statements(&strange).expect("valid"), End::Commit).await;
    assert_eq!(told.expect("an answer").outcome, "not_found");
    assert_eq!(host.orders().await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(store.job(strange.id).await.expect("read"), None);
    let rerun = statements(&job(8).subject("order 8", 1).rerun());
    assert_eq!(rerun.expect_err("no rerun").kind(), leasehold::ErrorKind::Invalid);
}

async fn every_column_arrives(host: &mut impl Host, store: &dyn Store, statements: Statements<'_>) {
    let at = Timestamp::saturating(4_000_000_000_000_007);
    let queue = QueueName::new("hosts").expect("a name");
    let job = job(9).queue(queue.clone()).key(key("order 9")).priority(-7).run_at(at);
    let job = job.key_ttl(Duration::from_secs(90)).scope(Scope::new("shop").expect("a scope"));
    let job = job.max_attempts(3).subject("order 9", 4);
    let job = job.traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let told = host.order(9, &statements(&job).expect("valid"), End::Commit).await;
    assert_eq!(told, Ok(answer("new", job.id, Some("waiting"))));
    let found = store.job(job.id).await.expect("read").expect("there");
    assert_eq!((found.queue, found.kind, found.payload), (queue, job.kind, job.payload));
    assert_eq!((found.scope, found.key, found.subject), (job.scope, job.key, job.subject));
    assert_eq!((found.priority, found.run_at, found.max_attempts), (-7, at, 3));
    assert_eq!((found.state, found.executions), (State::Waiting, 0));
    assert_eq!(work(store).await, [], "it is another queue's, and not due");
}
