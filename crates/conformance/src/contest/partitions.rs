//! Owns the contest for the room and the starts of partitions: many claim at once, some keep what they
//! have until it lapses, and nobody may ever see more than what was promised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    ClaimRequest, Control, JobFilter, LeaseLength, Paging, PartitionName, QueueName, QueueSettings,
    Rate, Result, StartRate, State, Store, StoreExt, Timestamp, WorkerId,
};

use super::all;
use crate::lab::{job_in, queue};

const ROOM: u32 = 2;
const BURST: u32 = 4;
const PER_SECOND: u32 = 10;
const NAMES: [&str; 3] = ["a", "b", "c"];

type Counts = BTreeMap<Option<PartitionName>, u32>;

pub(super) async fn keep_their_room_and_rate(stores: &[Arc<dyn Store>]) -> Result<()> {
    let name = queue("contest-partitions");
    let rate = StartRate::new(Rate::per_second(PER_SECOND), BURST)?;
    let settings = QueueSettings::new().partition_limit(Some(ROOM)).partition_rate(Some(rate));
    let settings = settings.lease(LeaseLength::from_millis(1_000)?);
    let first = &stores[0];
    first.control(Control::SetQueue(name.clone(), settings)).await?;
    let jobs = NAMES.iter().flat_map(|partition| (0..60).map(move |n| job_in(partition, n)));
    for answer in first.enqueue(jobs.map(|job| job.queue(name.clone())).collect()).await? {
        assert!(answer?.is_new());
    }
    let begun = first.stats().await?.now;
    let starts: Vec<Counts> =
        all(stores, |store, number| take_turns(store, queue("contest-partitions"), number))
            .await
            .into_iter()
            .collect::<Result<_>>()?;
    let elapsed = first.stats().await?.now.since(begun);
    let most = f64::from(BURST) + f64::from(PER_SECOND) * elapsed.as_secs_f64() + 1.0;
    let mut started = Counts::new();
    for (partition, count) in starts.into_iter().flatten() {
        *started.entry(partition).or_insert(0) += count;
    }
    assert_eq!(started.len(), NAMES.len(), "each had its turn");
    for (partition, count) in started {
        assert!(f64::from(count) <= most, "{count} starts of {partition:?} in {elapsed:?}");
    }
    Ok(())
}

/// Claims for a while; every third claim is kept until it lapses. What it started.
async fn take_turns(store: Arc<dyn Store>, name: QueueName, number: usize) -> Result<Counts> {
    let mut started = Counts::new();
    for round in 0..12 {
        let asked = ClaimRequest::new(WorkerId::new(), [name.clone()]).limit(3);
        for claim in store.claim(asked).await? {
            *started.entry(claim.job.partition.clone()).or_insert(0) += 1;
            if !(round + number).is_multiple_of(3) {
                // One that waited too long for others on a busy machine has lapsed.
                let _ended = store.succeed(claim.fence).await;
            }
        }
        let held = held(&*store, &name).await?;
        assert!(held.values().all(|held| *held <= ROOM), "{held:?}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Ok(started)
}

/// How many leases of each partition run: those that still do after the look did so at the look.
async fn held(store: &dyn Store, name: &QueueName) -> Result<Counts> {
    let leased = JobFilter::new().queue(name.clone()).state(State::Leased);
    let leased = store.jobs(leased, Paging::first(1_000)).await?.items;
    let now: Timestamp = store.stats().await?.now;
    let mut held = Counts::new();
    for job in leased.into_iter().filter(|job| job.lease_expires_at > Some(now)) {
        *held.entry(job.partition).or_insert(0) += 1;
    }
    Ok(held)
}
