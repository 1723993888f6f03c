//! Owns the comparison of an enqueue by statements with the store's own: one seeded story is played on
//! two stores, and answers and dumps must be equal. Knows no engine; the caller runs the statements.

use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::lab::LabStore;
use leasehold_core::{
    ClaimRequest, Enqueued, ErrorKind, IdempotencyKey, JobId, JobKind, Json, LifecycleName, NewJob,
    PruneRequest, QueueName, Result, Scope, Settlement, Statement, Timestamp, Verdict, WorkerId,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A store beside the driver that runs its statements.
#[async_trait]
pub trait RunsStatements: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn LabStore;

    /// The statements of an enqueue.
    ///
    /// # Errors
    /// As the store says.
    fn enqueue_sql(&self, job: &NewJob) -> Result<Vec<Statement>>;

    /// Runs statements in one transaction and commits: outcome, job, state.
    async fn run(&self, statements: Vec<Statement>) -> (String, JobId, Option<String>);
}

/// The words of a store's own answer.
fn words(job: JobId, answer: Result<Enqueued>) -> (String, JobId, Option<String>) {
    match answer {
        Ok(it) => {
            let outcome = if it.is_new() { "new" } else { "existing" };
            (outcome.to_owned(), it.job(), it.state().map(|state| state.as_str().to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::Conflict => {
            ("conflict".to_owned(), error.existing_job().unwrap_or(job), None)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => ("not_found".to_owned(), job, None),
        Err(error) => panic!("enqueue: {error}"),
    }
}

fn draw(random: &mut StdRng, jobs: &[NewJob]) -> NewJob {
    if !jobs.is_empty() && random.random_ratio(1, 5) {
        let mut again = jobs[random.random_range(0..jobs.len())].clone();
        if random.random_ratio(1, 3) {
            again.payload = Json::parse("{\"other\":true}").expect("a document");
        }
        return again;
    }
    let kind = JobKind::new(["resize", "m\u{e4}il"][random.random_range(0..2)]).expect("a kind");
    let long = format!("\"{}\"", "x".repeat(1_000));
    let payloads = ["null", "{\"a\": 1}", &long];
    let payload = Json::parse(payloads[random.random_range(0..3)]).expect("JSON");
    let mut job = NewJob::new(kind, payload).priority(random.random_range(-3..=3));
    job.queue = QueueName::new(["default", "other"][random.random_range(0..2)]).expect("a name");
    if random.random_ratio(2, 3) {
        let key = format!("key {}", random.random_range(0..6));
        job = job.key(IdempotencyKey::new(key).expect("a key"));
        if random.random() {
            job = job.key_ttl(Duration::from_secs(random.random_range(1..60)));
        }
        job.scope = Scope::new(["", "tenant"][random.random_range(0..2)]).expect("a scope");
    }
    let lifecycles = ["standard", "work_queue", "transcode", "review", "unknown"];
    if random.random_ratio(1, 3) {
        let name = lifecycles[random.random_range(0..lifecycles.len())];
        job.lifecycle = LifecycleName::new(name).expect("a name");
    }
    match random.random_range(0..5) {
        0 => job = job.delay(Duration::from_millis(random.random_range(0..90_000))),
        1 => job = job.delay(Duration::MAX),
        2 => job = job.run_at(Timestamp::MAX),
        3 => job = job.run_at(Timestamp::saturating(1_800_000_030_000_001)),
        _ => {}
    }
    if random.random_ratio(1, 4) {
        job = job.max_attempts(random.random_range(1..=u16::MAX));
    }
    if random.random_ratio(1, 4) {
        job = job.subject("order 7", random.random_range(0..9));
        job = job.traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
    job
}

/// Claims, ends, prunes and moves the clock, so that ids and keys are met in every position.
async fn stir(stores: [&dyn LabStore; 2], dice: u32) -> Result<()> {
    let queues = ["default", "other"].map(|name| QueueName::new(name).expect("a name"));
    let request = ClaimRequest::new(WorkerId::new(), queues).limit(3);
    let days = if dice == 2 { 2 } else { 0 };
    for store in stores {
        if dice < 2 {
            for claim in store.claim(request.clone()).await? {
                let verdict = Verdict::Succeed { result: None };
                // A job of several stages says no, and stays leased on both.
                let _said = store.settle(vec![Settlement::new(claim.fence, verdict)]).await?;
            }
        }
        let clock = store.clock().expect("a manual clock");
        clock.advance(Duration::from_secs(7 + days * 24 * 3600));
        if dice == 2 {
            store.prune(PruneRequest::default()).await?;
        }
    }
    Ok(())
}

/// Plays one story on both; the first runs statements, the second enqueues by itself.
///
/// # Errors
/// What the stores say.
pub async fn equal_enqueue(by: &dyn RunsStatements, own: &dyn LabStore, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut jobs = Vec::new();
    let rerun = draw(&mut random, &jobs).subject("order 7", 3).rerun();
    let refused = by.enqueue_sql(&rerun).expect_err("statements cannot decide a rerun");
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    for step in 0..60 {
        let job = draw(&mut random, &jobs);
        let mine = match own.enqueue(vec![job.clone()]).await {
            Ok(mut answers) => words(job.id, answers.remove(0)),
            Err(error) => words(job.id, Err(error)),
        };
        let (outcome, id, state) = by.run(by.enqueue_sql(&job)?).await;
        assert_eq!((&outcome, id), (&mine.0, mine.1), "seed {seed}, step {step}: {job:?}");
        if outcome == "new" || outcome == "existing" {
            assert_eq!(state, mine.2, "seed {seed}, step {step}: {job:?}");
        }
        if step % 6 == 0 {
            let difference = own.dump().await?.difference(&by.store().dump().await?);
            assert!(difference.is_empty(), "seed {seed}, step {step}: {job:?}\n{difference}");
        }
        jobs.push(job);
        let dice = random.random_range(0..6);
        stir([own, by.store()], dice).await?;
    }
    Ok(())
}
