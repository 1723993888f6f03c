//! Owns workers that are killed or stopped at each of their await points in turn: before and after every
//! write that they send, and inside the handler. Others take over, and the stopped ones go on too late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold::{CancellationToken, Context, Handled, Worker};
use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::faults::watched::{Steps, Watched};
use leasehold_core::{JobKind, Json, LeaseLength, NewEvent, Result, Topic};
use libtest_mimic::Failed;

use crate::child::{Child, say};
use crate::engine::Engine;
use crate::{add_jobs, one_event_a_job, runs, runtime, until_all_succeeded};

/// Workers harmed at once.
const AT_ONCE: usize = 10;
/// Await points of a worker from its start to the end of its second job, and some more.
const POINTS: usize = 22;
/// How many points a worker passes that goes on too late.
const LATE_POINTS: usize = 6;

/// More writes than a worker has under way at once.
const WRITES_MAX: u32 = 64;

/// Announces each step, and waits for a word: `go`, or `hold`, after which no write is under way. A
/// worker stands at one step while another of its writes is being made, or a lease renewed; one that is
/// stopped inside a transaction keeps its locks, which is a story of its own.
#[derive(Debug)]
struct Gate {
    turn: tokio::sync::Mutex<()>,
    /// Each write has one of them while it is under way.
    writes: tokio::sync::Semaphore,
}

impl Gate {
    fn new() -> Self {
        let writes = tokio::sync::Semaphore::new(WRITES_MAX as usize);
        Self { turn: tokio::sync::Mutex::default(), writes }
    }

    async fn pass(&self, point: &str) {
        let _turn = self.turn.lock().await;
        say(&format!("at {point}"));
        let mut held = None;
        while hear().await == "hold" {
            held = Some(self.writes.acquire_many(WRITES_MAX).await.expect("never closed"));
            say("held");
        }
        drop(held);
    }
}

/// The parent's next word.
async fn hear() -> String {
    let read = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line.trim().to_owned())
    };
    let heard = tokio::task::spawn_blocking(read).await.expect("no panic");
    heard.expect("a word from the parent")
}

#[async_trait]
impl Steps for Gate {
    async fn before(&self, verb: &'static str) -> Result<()> {
        if !verb.starts_with("renew") {
            self.pass(&format!("before {verb}")).await;
        }
        self.writes.acquire().await.expect("never closed").forget();
        Ok(())
    }

    async fn after(&self, verb: &'static str) -> Result<()> {
        self.writes.add_permits(1);
        if !verb.starts_with("renew") {
            self.pass(&format!("after {verb}")).await;
        }
        Ok(())
    }
}

/// The child: a worker that goes from one await point to the next when told to.
pub(crate) async fn work_gated(url: &str) -> Result<()> {
    let topic = Topic::new("counted")?;
    let gate = Arc::new(Gate::new());
    let store = Watched::new(leasehold::connect(url).await?, Arc::clone(&gate) as _);
    let worker = Worker::builder(store)
        .handler(JobKind::new("count")?, move |context: Context, _number: u64| {
            let (gate, topic) = (Arc::clone(&gate), topic.clone());
            async move {
                gate.pass("begun").await;
                context.checkpoint(Json::null()).await?;
                gate.pass("done").await;
                Ok(Handled::done().event(NewEvent::new(topic, Json::null())))
            }
        })
        .slots(1)
        .lease(LeaseLength::from_millis(3_000)?)
        .upkeep(None)
        .build();
    worker.run(CancellationToken::new()).await
}

/// Has a worker pass so many points; it stands at the next one then.
fn drive(child: &mut Child, points: usize) -> Result<(), Failed> {
    for _ in 0..points {
        child.wait_for("at ")?;
        child.say("go")?;
    }
    child.wait_for("at ").map(drop)
}

/// Starts workers on jobs of their own and has each stand at its point.
fn standing(engine: &Engine, round: usize) -> Result<Vec<Child>, Failed> {
    let start = |_| Child::start("gated", engine);
    let mut children: Vec<Child> = (0..AT_ONCE).map(start).collect::<std::io::Result<_>>()?;
    std::thread::scope(|scope| {
        let numbered = children.iter_mut().enumerate();
        let driven: Vec<_> = numbered
            .map(|(at, child)| scope.spawn(move || drive(child, (round * AT_ONCE + at) % POINTS)))
            .collect();
        driven.into_iter().try_for_each(|driven| driven.join().expect("no panic"))
    })?;
    Ok(children)
}

/// Proves: WQ-11, GLO-2, TX-1
pub(crate) fn workers_killed_at_any_await_lose_nothing(engine: &Engine) -> Result<(), Failed> {
    let kills = runs("LEASEHOLD_KILLS", 100);
    let evidence = Evidence::of("workers killed at an await point", engine.name());
    let jobs = rounds(engine, kills, |children| {
        children.iter_mut().try_for_each(|child| child.kill())?;
        Ok(Vec::new())
    })?;
    tell(evidence, "kills", kills, jobs);
    Ok(())
}

/// Proves: WQ-5, WQ-6, GLO-3, TX-1
pub(crate) fn workers_paused_at_any_await_change_nothing(engine: &Engine) -> Result<(), Failed> {
    let pauses = runs("LEASEHOLD_PAUSES", 200);
    let evidence = Evidence::of("workers paused past their lease at an await point", engine.name());
    let jobs = rounds(engine, pauses, |children| {
        for child in &mut *children {
            child.say("hold")?;
            child.wait_for("held")?;
            child.pause()?;
        }
        Ok(std::mem::take(children))
    })?;
    tell(evidence, "pauses", pauses, jobs);
    Ok(())
}

fn tell(evidence: Evidence, what: &str, times: usize, jobs: usize) {
    let rounds = times.div_ceil(AT_ONCE);
    let evidence = evidence.count(what, rounds * AT_ONCE).count("await points", POINTS);
    let evidence = evidence.count("jobs", jobs).count("jobs lost", 0);
    evidence.count("accepted stale writes", 0).tell();
}

/// Harms so many workers, a few at once; the jobs that there were. Those that `harm` gives back are let
/// go on when the others have done all the work.
fn rounds(
    engine: &Engine,
    times: usize,
    harm: impl Fn(&mut Vec<Child>) -> Result<Vec<Child>, Failed>,
) -> Result<usize, Failed> {
    let mut jobs = 0;
    for round in 0..times.div_ceil(AT_ONCE) {
        jobs += 2 * AT_ONCE;
        runtime().block_on(async {
            let store = engine.open().await?;
            add_jobs(&*store, 2 * AT_ONCE).await?;
            Ok::<_, Failed>(())
        })?;
        let mut children = standing(engine, round)?;
        let mut stopped = harm(&mut children)?;
        let _rescuers = [Child::start("worker", engine)?, Child::start("worker", engine)?];
        runtime().block_on(async {
            let store = engine.open().await?;
            until_all_succeeded(&store, jobs).await?;
            Ok::<_, Failed>(())
        })?;
        std::thread::scope(|scope| {
            let late = stopped.iter_mut().map(|child| scope.spawn(move || go_on_late(child)));
            let late: Vec<_> = late.collect();
            late.into_iter().try_for_each(|late| late.join().expect("no panic"))
        })?;
        drop(stopped);
        runtime().block_on(async {
            let store = engine.open().await?;
            until_all_succeeded(&store, jobs).await?;
            one_event_a_job(&store, jobs).await
        })?;
    }
    Ok(jobs)
}

/// Has a stopped worker go on, a few points beyond the one where it stood.
fn go_on_late(child: &mut Child) -> Result<(), Failed> {
    child.go_on()?;
    child.say("go")?;
    for _ in 0..LATE_POINTS {
        // One whose claim is gone may have come to its rest before.
        if child.0.wait_for("at ", Duration::from_millis(700)).is_err() {
            break;
        }
        child.say("go")?;
    }
    Ok(())
}
