//! Workers as processes of their own, ended and paused for real: what they leave behind is taken
//! over, and what they try afterwards is refused. The children are this program again, in a role.
#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

#[path = "processes/awaits.rs"]
mod awaits;
#[path = "processes/bound.rs"]
mod bound;
#[path = "processes/child.rs"]
mod child;
#[path = "processes/engine.rs"]
mod engine;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use child::Child;
use engine::Engine;
use leasehold_core::{
    EventFilter, JobFilter, JobKind, Json, LeaseLength, NewJob, Paging, PartitionName, Query,
    QueueSettings, Result, State, Store, StoreExt,
};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// What a trial runs.
type Story = fn(&Engine) -> Result<(), Failed>;

const STORIES: [(&str, Story); 8] = [
    ("terminated_worker_gives_its_jobs_back", terminated_worker_gives_its_jobs_back),
    ("killed_workers_lose_nothing", killed_workers_lose_nothing),
    ("stopped_worker_changes_nothing", stopped_worker_changes_nothing),
    ("eight_workers_share_the_jobs", eight_workers_share_the_jobs),
    ("killed_workers_leak_no_room", killed_workers_leak_no_room),
    ("sixty_four_claimers_keep_the_bound", bound::sixty_four_claimers_keep_the_bound),
    ("workers_killed_at_any_await_lose_nothing", awaits::workers_killed_at_any_await_lose_nothing),
    (
        "workers_paused_at_any_await_change_nothing",
        awaits::workers_paused_at_any_await_change_nothing,
    ),
];

fn main() -> ExitCode {
    if let Some(code) = child::play_role() {
        return code;
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for engine in Engine::all() {
        for (name, story) in STORIES {
            let (engine, name) = (engine.clone(), format!("{}::{name}", engine.name()));
            let absent = engine.is_absent();
            let trial = Trial::test(name, move || engine.fresh(story));
            trials.push(trial.with_ignored_flag(absent && !engine::required()));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A number of runs: what the environment names, else the usual one.
fn runs(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

/// Adds jobs of the kind `count` whose leases last one second.
async fn add_jobs(store: &dyn Store, jobs: usize) -> Result<()> {
    add_jobs_of(store, jobs, 0).await
}

/// The same, of so many partitions.
async fn add_jobs_of(store: &dyn Store, jobs: usize, partitions: usize) -> Result<()> {
    let queue = leasehold_core::QueueName::default_queue();
    let settings = QueueSettings::new().lease(LeaseLength::from_millis(1_000)?);
    store.control(leasehold_core::Control::SetQueue(queue, settings)).await?;
    let kind = JobKind::new("count")?;
    let job = |n: usize| {
        let job = NewJob::new(kind.clone(), Json::parse(format!("{n}"))?).max_attempts(50);
        Ok(match n.checked_rem(partitions) {
            Some(place) => job.partition(PartitionName::new(format!("tenant {place}"))?),
            None => job,
        })
    };
    let batch = (0..jobs).map(job).collect::<Result<Vec<_>>>()?;
    for answer in store.enqueue(batch).await? {
        assert!(answer?.is_new());
    }
    Ok(())
}

async fn until_all_succeeded(store: &Arc<dyn Store>, jobs: usize) -> Result<(), Failed> {
    let begun = Instant::now();
    let filter = JobFilter::new().state(State::Succeeded);
    loop {
        let done = store.jobs(filter.clone(), Paging::first(1_000)).await?.items.len();
        if done == jobs {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(format!("{done} of {jobs} jobs succeeded within 60 s").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Each success publishes one event with its settlement, so there are as many as jobs.
async fn one_event_a_job(store: &Arc<dyn Store>, jobs: usize) -> Result<(), Failed> {
    let query = Query::Events(EventFilter::default(), Paging::first(1_000));
    let events = store.find(query).await?.items.len();
    match events == jobs {
        true => Ok(()),
        false => Err(format!("{events} events for {jobs} jobs").into()),
    }
}

/// Proves: WQ-11, GLO-2, TX-1
fn killed_workers_lose_nothing(engine: &Engine) -> Result<(), Failed> {
    const JOBS: usize = 60;
    runtime().block_on(async {
        let store = engine.open().await?;
        add_jobs(&*store, JOBS).await?;
        for _ in 0..4 {
            let mut victim = Child::start("worker", engine)?;
            victim.wait_for("begun")?;
            victim.kill()?;
        }
        let _rescuers = [Child::start("worker", engine)?, Child::start("worker", engine)?];
        until_all_succeeded(&store, JOBS).await?;
        one_event_a_job(&store, JOBS).await?;
        let rerun = store.jobs(JobFilter::default(), Paging::first(1_000)).await?.items;
        match rerun.iter().any(|job| job.executions > 1) {
            true => Ok(()),
            false => Err("no job was taken over: the kills hit nothing".into()),
        }
    })
}

/// Proves: QUE-8, WQ-6
fn killed_workers_leak_no_room(engine: &Engine) -> Result<(), Failed> {
    // Room for the slots of all three workers, and jobs enough that no victim finds none.
    const PARTITIONS: usize = 6;
    const ROOM: u32 = 2;
    const AT_FIRST: usize = 400;
    const MORE: usize = 140;
    const KILLS: usize = 4;
    runtime().block_on(async {
        let store = engine.open().await?;
        let queue = leasehold_core::QueueName::default_queue();
        let settings = QueueSettings::new().partition_limit(Some(ROOM));
        store.control(leasehold_core::Control::SetQueue(queue, settings)).await?;
        add_jobs_of(&*store, AT_FIRST, PARTITIONS).await?;
        let mut workers: Vec<Child> =
            (0..3).map(|_| Child::start("worker", engine)).collect::<Result<_, _>>()?;
        for _kill in 0..KILLS {
            add_jobs_of(&*store, MORE, PARTITIONS).await?;
            let mut victim = workers.remove(0);
            victim.wait_for("begun")?;
            room_is_kept(&store, ROOM).await?;
            victim.kill()?;
            workers.push(Child::start("worker", engine)?);
            room_is_kept(&store, ROOM).await?;
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            room_is_kept(&store, ROOM).await?;
        }
        until_all_succeeded(&store, AT_FIRST + KILLS * MORE).await?;
        one_event_a_job(&store, AT_FIRST + KILLS * MORE).await
    })
}

/// No partition has more unexpired leases than its room.
async fn room_is_kept(store: &Arc<dyn Store>, room: u32) -> Result<(), Failed> {
    let leased = JobFilter::new().state(State::Leased);
    let leased = store.jobs(leased, Paging::first(1_000)).await?.items;
    // What runs on after the look ran at the look.
    let now = store.stats().await?.now;
    let mut held = std::collections::BTreeMap::new();
    for job in leased.iter().filter(|job| job.lease_expires_at > Some(now)) {
        *held.entry(job.partition.clone()).or_insert(0) += 1;
    }
    match held.values().all(|held| *held <= room) {
        true => Ok(()),
        false => Err(format!("more than {room} are held: {held:?}").into()),
    }
}

/// Proves: WQ-5, WQ-6, GLO-3
fn stopped_worker_changes_nothing(engine: &Engine) -> Result<(), Failed> {
    runtime().block_on(async {
        let store = engine.open().await?;
        add_jobs(&*store, 1).await?;
        let mut zombie = Child::start("holder", engine)?;
        zombie.wait_for("claimed")?;
        zombie.signal("STOP")?;
        let _rescuer = Child::start("worker", engine)?;
        until_all_succeeded(&store, 1).await?;
        let before = store.jobs(JobFilter::default(), Paging::first(1)).await?;

        zombie.signal("CONT")?;
        zombie.say("settle")?;
        zombie.wait_for("refused: fence lost")?;

        let after = store.jobs(JobFilter::default(), Paging::first(1)).await?;
        assert_eq!(before, after);
        one_event_a_job(&store, 1).await
    })
}

/// Proves: WQ-20, WQ-19
fn terminated_worker_gives_its_jobs_back(engine: &Engine) -> Result<(), Failed> {
    runtime().block_on(async {
        let store = engine.open().await?;
        add_jobs(&*store, 10).await?;
        let mut child = Child::start("drained", engine)?;
        for _ in 0..8 {
            child.wait_for("begun")?;
        }
        child.signal("TERM")?;
        child.wait_for("told")?;
        child.signal("TERM")?; // an impatient operator changes nothing
        assert!(child.end(Duration::from_secs(60))?.success(), "half of its jobs would never end");
        let jobs = store.jobs(JobFilter::default(), Paging::first(20)).await?.items;
        let (ended, rest): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.state == State::Succeeded);
        assert!(ended.len() >= 4 && rest.len() >= 4, "{ended:?}");
        for job in rest {
            assert_eq!((job.state, job.attempts), (State::Waiting, 0), "job {}", job.id);
        }
        Ok(())
    })
}

/// Proves: WQ-3
fn eight_workers_share_the_jobs(engine: &Engine) -> Result<(), Failed> {
    const JOBS: usize = 200;
    runtime().block_on(async {
        let store = engine.open().await?;
        add_jobs(&*store, JOBS).await?;
        let workers: Vec<Child> =
            (0..8).map(|_| Child::start("worker", engine)).collect::<Result<_, _>>()?;
        until_all_succeeded(&store, JOBS).await?;
        one_event_a_job(&store, JOBS).await?;
        drop(workers);
        Ok(())
    })
}
