//! Owns the workloads: what each does, over and over, and what is timed. Knows a store only by the
//! contract, so that every engine does the same work.

mod drain;
mod enqueue;
mod pickup;
mod sample;

use std::sync::Arc;

use leasehold::{JobId, JobKind, Json, NewJob, QueueName, Result, Store};
use serde::Deserialize;

pub(crate) use sample::Sample;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Enqueue one job after the other, each awaited.
    #[value(name = "w1")]
    W1,
    /// Enqueue single jobs from 64 tasks at once.
    #[value(name = "w1_c64")]
    W1C64,
    /// Enqueue in batches of 100.
    #[value(name = "w2_100")]
    W2By100,
    /// Enqueue in batches of 1,000.
    #[value(name = "w2_1000")]
    W2By1000,
    /// A worker drains jobs that are already queued, until the database says that none is left.
    #[value(name = "w3")]
    W3,
    /// From the start of an enqueue into an idle system to the start of its handler.
    #[value(name = "w4_from_call")]
    W4FromCall,
    /// From the return of an enqueue into an idle system to the start of its handler.
    #[value(name = "w4_from_commit")]
    W4FromCommit,
}

/// Where a workload works, and how much.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: QueueName,
    pub(crate) jobs: usize,
    /// How many jobs a worker runs at once.
    pub(crate) slots: usize,
}

impl Workload {
    pub(crate) const ALL: [Self; 7] = [
        Self::W1,
        Self::W1C64,
        Self::W2By100,
        Self::W2By1000,
        Self::W3,
        Self::W4FromCall,
        Self::W4FromCommit,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W1C64 => "w1_c64",
            Self::W2By100 => "w2_100",
            Self::W2By1000 => "w2_1000",
            Self::W3 => "w3",
            Self::W4FromCall => "w4_from_call",
            Self::W4FromCommit => "w4_from_commit",
        }
    }

    pub(crate) async fn run(self, load: &Load) -> Result<Sample> {
        match self {
            Self::W1 => enqueue::one_by_one(load).await,
            Self::W1C64 => enqueue::from_tasks(load, 64).await,
            Self::W2By100 => enqueue::in_batches(load, 100).await,
            Self::W2By1000 => enqueue::in_batches(load, 1_000).await,
            Self::W3 => drain::drain(load).await,
            Self::W4FromCall => pickup::pick_up(load, pickup::From::Call).await,
            Self::W4FromCommit => pickup::pick_up(load, pickup::From::Return).await,
        }
    }
}

const QUEUE_PREFIX: &str = "bench-";

/// The name of a queue that nobody has used.
pub(crate) fn fresh_queue() -> Result<QueueName> {
    QueueName::new(format!("{QUEUE_PREFIX}{}", JobId::new()))
}

/// Whether a queue is left from a bench.
pub(crate) fn is_bench_queue(queue: &QueueName) -> bool {
    queue.as_str().starts_with(QUEUE_PREFIX)
}

/// What a handler reads.
#[derive(Debug, Deserialize)]
pub(crate) struct Payload {
    pub(crate) number: usize,
}

/// About 200 bytes of JSON.
pub(crate) fn payload(number: usize) -> String {
    format!(
        r#"{{"number":{number},"account":"acct_{number:012}","action":"thumbnail.render","source":"s3://uploads/{number:016x}/original.jpeg","widths":[160,320,640,1280],"quality":82,"trim":false,"note":"as asked by the owner"}}"#
    )
}

fn kind() -> Result<JobKind> {
    JobKind::new("bench")
}

fn job(queue: &QueueName, number: usize) -> Result<NewJob> {
    Ok(NewJob::new(kind()?, Json::parse(payload(number))?).queue(queue.clone()))
}
