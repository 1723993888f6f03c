//! Owns the workloads: what each does, over and over, and what is timed. Knows a store only by the
//! contract, so that every engine does the same work.

pub mod child;
pub mod claims;
mod drain;
mod enqueue;
mod name;
mod pickup;
mod processes;
mod sample;

use leasehold::{
    Control, JobId, JobKind, Json, NewJob, PartitionName, QueueName, QueueSettings, Result,
};
use serde::Deserialize;

use crate::connect::Opened;
pub use name::Workload;
pub use sample::Sample;

use super::beside::Crowd;

/// Where a workload works, and how much.
#[derive(Clone, Debug)]
pub struct Load {
    pub opened: Opened,
    pub queue: QueueName,
    pub jobs: usize,
    /// How many jobs a worker runs at once.
    pub slots: usize,
    /// Other rows in the queue, where the workload is about them.
    pub rows: usize,
    /// How many processes work at once, one measurement for each.
    pub processes: Vec<usize>,
    /// Whether a transition log is kept.
    pub log: bool,
    /// How many partitions the jobs are of; 0: none of any.
    pub partitions: usize,
}

impl Workload {
    /// Measures; some workloads give several measurements.
    pub async fn run(self, load: &Load) -> Result<Vec<Sample>> {
        let one = match self {
            Self::W6 => return several(load).await,
            Self::W7 => {
                let free = claims::beside_reader(load, false).await?;
                let next = Load { queue: fresh_queue()?, ..load.clone() };
                return Ok(vec![free, claims::beside_reader(&next, true).await?]);
            }
            Self::W1 => enqueue::one_by_one(load).await,
            Self::W1C64 => enqueue::from_tasks(load, 64).await,
            Self::W2By100 => enqueue::in_batches(load, 100).await,
            Self::W2By1000 => enqueue::in_batches(load, 1_000).await,
            Self::W3 => drain::drain(load).await,
            Self::W3Partitions => {
                drain::drain(&Load { partitions: PARTITIONS, ..load.clone() }).await
            }
            Self::W4FromCall => pickup::pick_up(load, pickup::From::Call).await,
            Self::W4FromCommit => pickup::pick_up(load, pickup::From::Return).await,
            Self::W5By10K | Self::W5By1M | Self::W5Done10M | Self::W5Future1M => {
                claims::beside_crowd(load, self.crowd(), load.rows).await
            }
            Self::Memory => processes::hold(load).await,
        };
        Ok(vec![one?])
    }

    /// What the other rows of the queue are.
    pub fn crowd(self) -> Crowd {
        match self {
            Self::W5Done10M => Crowd::Done,
            Self::W5Future1M => Crowd::Future,
            _ => Crowd::Due,
        }
    }
}

async fn several(load: &Load) -> Result<Vec<Sample>> {
    let mut samples = Vec::with_capacity(load.processes.len());
    for count in &load.processes {
        let load = Load { queue: fresh_queue()?, ..load.clone() };
        samples.push(processes::drain(&load, *count).await?);
    }
    Ok(samples)
}

/// The partitions of `w3_partitions`, and how many leases each may have.
const PARTITIONS: usize = 1_000;
const PARTITION_LIMIT: u32 = 100;

const QUEUE_PREFIX: &str = "bench-";

/// The name of a queue that nobody has used.
pub fn fresh_queue() -> Result<QueueName> {
    QueueName::new(format!("{QUEUE_PREFIX}{}", JobId::new()))
}

/// Whether a queue is left from a bench.
pub fn is_bench_queue(queue: &QueueName) -> bool {
    queue.as_str().starts_with(QUEUE_PREFIX)
}

/// Makes the queue, and says whether its jobs leave a transition log.
async fn settle_log(load: &Load) -> Result<()> {
    let limit = (load.partitions > 0).then_some(PARTITION_LIMIT);
    let settings = QueueSettings::new().log(Some(load.log)).partition_limit(limit);
    load.opened.store.control(Control::SetQueue(load.queue.clone(), settings)).await.map(|_| ())
}

/// What a handler reads.
#[derive(Debug, Deserialize)]
pub struct Payload {
    pub number: usize,
}

/// About 200 bytes of JSON.
pub fn payload(number: usize) -> String {
    format!(
        r#"{{"number":{number},"account":"acct_{number:012}","action":"thumbnail.render","source":"s3://uploads/{number:016x}/original.jpeg","widths":[160,320,640,1280],"quality":82,"trim":false,"note":"as asked by the owner"}}"#
    )
}

fn kind() -> Result<JobKind> {
    JobKind::new("bench")
}

fn job(load: &Load, number: usize) -> Result<NewJob> {
    let job = NewJob::new(kind()?, Json::parse(payload(number))?).queue(load.queue.clone());
    match number.checked_rem(load.partitions) {
        Some(partition) => Ok(job.partition(PartitionName::new(format!("tenant-{partition}"))?)),
        None => Ok(job),
    }
}
