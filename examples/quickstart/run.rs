//! Owns the run: jobs in, workers beside, one killed, one paused, events out, until all is done.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use leasehold::{
    HandlerError, JobFilter, JsonLinesSink, LeaseLength, Paging, Relay, State, Stats, Store,
    StoreExt,
};
use tokio_util::sync::CancellationToken;

use crate::child::Child;
use crate::{Settings, files, report};

pub(crate) async fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(&settings.place)?;
    let begun = Instant::now();
    let store = leasehold::connect(&settings.url()).await?;
    let left = enqueue(&*store, settings).await?;
    if left == 0 {
        println!("every file of {} is packed already", settings.folder.display());
        return Ok(());
    }
    let stop = CancellationToken::new();
    let relay = relay(&store, settings, stop.clone());

    let refused = drama(&store, settings, left).await?;
    until(&*store, |stats| stats.outbox.waiting + stats.outbox.leased == 0).await?;
    stop.cancel();
    relay.await?.map_err(|failed| failed.failure().to_string())?;

    let (tally, stats) = (report::tally(&*store).await?, store.stats().await?);
    report::print(&tally, &stats, refused, left, begun.elapsed());
    println!("\npacked files and events: {}", settings.place.display());
    match tally.succeeded == tally.jobs {
        true => forget(settings),
        false => Err(format!("{} jobs did not succeed", tally.jobs - tally.succeeded).into()),
    }
}

/// Adds a job for every file; how many are still to do.
async fn enqueue(store: &dyn Store, settings: &Settings) -> Result<usize, Box<dyn Error>> {
    let found = files::below(&settings.folder)?;
    let jobs = found.iter().map(|path| files::job(path)).collect::<Result<Vec<_>, _>>()?;
    let (mut new, mut left) = (0, 0);
    for batch in jobs.chunks(1_000) {
        for answer in store.enqueue(batch.to_vec()).await? {
            let answer = answer?;
            new += usize::from(answer.is_new());
            left += usize::from(answer.state().is_some_and(|state| !state.is_terminal()));
        }
    }
    println!("{} files, {new} new jobs, {left} to do", found.len());
    Ok(left)
}

type Relaying = tokio::task::JoinHandle<Result<(), HandlerError>>;

fn relay(store: &Arc<dyn Store>, settings: &Settings, stop: CancellationToken) -> Relaying {
    let (store, path) = (store.clone(), settings.place.join("events.jsonl"));
    tokio::spawn(async move {
        let sink = JsonLinesSink::file(path).await?;
        Ok(Relay::new(store, sink).lease(LeaseLength::from_millis(2_000)?).run(&stop).await?)
    })
}

/// The workers at work: one is killed with jobs in hand, one is paused past its lease.
async fn drama(
    store: &Arc<dyn Store>,
    settings: &Settings,
    left: usize,
) -> Result<usize, Box<dyn Error>> {
    let bar = ProgressBar::new(left as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}")?);
    let done = || async {
        let filter = JobFilter::new().state(State::Succeeded);
        store.jobs(filter, Paging::first(1)).await.map(|page| page.items.len())
    };
    let before = succeeded(&store.stats().await?);

    let mut zombie = Child::start("holder", settings, false)?;
    let held = zombie.hears("holding").await;
    if held.is_some() {
        zombie.signal("STOP")?;
    }
    let mut victim = Child::start("worker", settings, true)?;
    if victim.hears("begun").await.is_some() {
        victim.kill()?;
        bar.println("a worker process is killed with jobs in hand; they will be taken over");
    }
    let _workers =
        [Child::start("worker", settings, false)?, Child::start("worker", settings, false)?];
    while done().await? == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let goal = before + left as u64;
    loop {
        let stats = store.stats().await?;
        bar.set_position(succeeded(&stats).saturating_sub(before));
        if ended(&stats) >= goal {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bar.finish();
    let mut refused = 0;
    if let Some(job) = held {
        zombie.signal("CONT")?;
        zombie.say()?;
        if let Some(why) = zombie.hears("refused").await {
            println!("the paused worker woke up and tried to end job {job}\n  {why}");
            refused += 1;
        }
    }
    Ok(refused)
}

fn succeeded(stats: &Stats) -> u64 {
    stats.queues.iter().map(|queue| queue.succeeded).sum()
}

fn ended(stats: &Stats) -> u64 {
    let of = |queue: &leasehold::QueueStats| {
        queue.succeeded + queue.failed + queue.dead_letter + queue.cancelled
    };
    stats.queues.iter().map(of).sum()
}

async fn until(store: &dyn Store, done: impl Fn(&Stats) -> bool) -> Result<(), Box<dyn Error>> {
    while !done(&store.stats().await?) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A finished run on the embedded database leaves only its output, so that the next one starts anew.
fn forget(settings: &Settings) -> Result<(), Box<dyn Error>> {
    if settings.url.is_none() {
        for name in ["jobs.db", "jobs.db-wal", "jobs.db-shm"] {
            let _absent = std::fs::remove_file(settings.place.join(name));
        }
    }
    Ok(())
}
