//! Owns the run: jobs in, workers beside, one killed, one paused, events out, until all is done.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use leasehold::{
    CancellationToken, EventFilter, EventState, HandlerError, JsonLinesSink, LeaseLength, Paging,
    Query, QueueStats, Relay, Store, Topic,
};

use crate::child::Child;
use crate::{Settings, files, report};

/// How long nothing at all may happen before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

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
    let refused = drama(&*store, settings, left).await?;
    while undelivered(&*store).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
    let found = files::below(&settings.folder, &settings.place)?;
    if found.is_empty() {
        return Err(format!("{} holds no files", settings.folder.display()).into());
    }
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

/// Writes every event of every job to a file, a line each.
fn relay(store: &Arc<dyn Store>, settings: &Settings, stop: CancellationToken) -> Relaying {
    let (store, path) = (store.clone(), settings.place.join("events.jsonl"));
    tokio::spawn(async move {
        let sink = JsonLinesSink::file(path).await?;
        let relay = Relay::new(store, sink).topics([Topic::new("transcode")?]);
        Ok(relay.lease(LeaseLength::from_millis(2_000)?).run(stop).await?)
    })
}

/// The workers at work: one is paused past its lease, one killed with jobs in hand. Gives how many
/// stale writes were refused.
async fn drama(
    store: &dyn Store,
    settings: &Settings,
    left: usize,
) -> Result<usize, Box<dyn Error>> {
    let bar = ProgressBar::new(left as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} jobs")?);
    let tell = |text: String| bar.suspend(|| println!("{text}"));
    let goal = ended(store).await? + left as u64;

    let mut zombie = Child::start("holder", settings, false)?;
    let held = zombie.hears("holding").await;
    if let Some(job) = &held {
        zombie.signal("STOP")?;
        tell(format!("worker {} holds job {job} and is paused (SIGSTOP)", zombie.id()));
    }
    let mut victim = Child::start("worker", settings, true)?;
    if victim.hears("begun").await.is_some() {
        victim.kill()?;
        tell(format!("worker {} is killed (SIGKILL) with jobs in hand", victim.id()));
    }
    let mut workers =
        [Child::start("worker", settings, false)?, Child::start("worker", settings, false)?];
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let done = ended(store).await?;
        bar.set_position((done + left as u64).saturating_sub(goal));
        if done >= goal {
            break;
        }
        if done != seen {
            (seen, since) = (done, Instant::now());
        }
        if since.elapsed() > PATIENCE || workers.iter_mut().all(|worker| !worker.is_running()) {
            return Err("the workers stand still".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bar.finish();
    let Some(job) = held else { return Ok(0) };
    zombie.signal("CONT")?;
    zombie.say()?;
    let why =
        zombie.hears("refused").await.ok_or("the paused worker's late write was not refused")?;
    println!("the paused worker woke up (SIGCONT) and tried to end job {job}:\n  {why}");
    Ok(1)
}

/// How many of this example's jobs have come to their end.
async fn ended(store: &dyn Store) -> Result<u64, Box<dyn Error>> {
    let of =
        |queue: &QueueStats| queue.succeeded + queue.failed + queue.dead_letter + queue.cancelled;
    Ok(store.stats().await?.queue(&files::queue()?).map_or(0, of))
}

async fn undelivered(store: &dyn Store) -> Result<bool, Box<dyn Error>> {
    for state in [EventState::Waiting, EventState::Leased] {
        let filter = EventFilter::new().topic(Topic::new("transcode")?).state(state);
        if !store.find(Query::Events(filter, Paging::first(1))).await?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
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
