//! Owns a storm: a load that goes on while one fault after the other strikes, until enough outcomes were
//! unknown; then all is worked off in calm and judged. Refuses to know the engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Error, ErrorKind, Result, Store};

use super::load::{Load, Tally, Told};
use super::proxy::{End, Fault, Proxy, Way};
use super::verdict::{Verdict, judge};
use super::watched::{Steps, Watched};
use crate::report::coverage::Shares;
use crate::report::{Hurt, Report};
use crate::script::draw::Draw;

/// What a storm came to.
#[derive(Debug)]
pub struct Storm {
    /// What callers and workers were told.
    pub told: Arc<Told>,
    /// What the store holds against it.
    pub verdict: Verdict,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Fault {
    /// The kind in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Cut { end: End::Close, .. } => "connection closed at a byte",
            Self::Cut { end: End::Reset, .. } => "connection reset at a byte",
            Self::Stall { .. } => "wire stalled",
            Self::Delay(_) => "wire delayed",
            Self::CommitLost => "commit lost",
            Self::CommitLate(_) => "commit late, its client gone",
            Self::ReplyLost => "reply to a commit lost",
            Self::RepliesLost => "all replies since a commit lost",
        }
    }

    /// What strikes one after the other in a storm.
    fn numbered(number: u64) -> Self {
        let (round, after) = (number / 10, number * 37 % 700);
        let way = if round.is_multiple_of(2) { Way::ToServer } else { Way::ToClient };
        match number % 10 {
            0 | 3 => Self::ReplyLost,
            2 => Self::CommitLate(Duration::from_millis(30)),
            5 => Self::RepliesLost,
            6 => Self::Cut { way, after, end: End::Reset },
            8 if round % 4 < 2 => Self::Cut { way, after, end: End::Close },
            8 => Self::Stall { way, after, pause: Duration::from_millis(40) },
            _ => Self::CommitLost,
        }
    }
}

/// How many faults strike shortly after each other.
const GUST: u64 = 8;
/// Between two gusts: calls that were hurt get through, or the same ones would be hurt again and again.
const CALM: Duration = Duration::from_millis(80);

/// Unknown outcomes whose repeat has told what had happened.
fn resolved(told: &Told) -> u64 {
    Tally::read(&told.tally.had) + Tally::read(&told.tally.had_not)
}

/// Runs a load over stores behind a proxy until so many unknown outcomes were resolved; `calm` is the same
/// database, reached directly.
///
/// # Errors
/// What a store says that no repeat mends.
///
/// # Panics
/// When a task of the load does.
pub async fn on_the_wire(
    proxy: &Proxy,
    stores: Vec<Arc<dyn Store>>,
    calm: &dyn Store,
    load: Load,
    wanted: u64,
) -> Result<Storm> {
    let told = Told::new(load);
    let running = start(&told, stores);
    let mut faults = BTreeMap::new();
    let (mut number, mut counted) = (0, proxy.strikes());
    while resolved(&told) < wanted && !told.is_over() {
        let (before, fault) = (counted, Fault::numbered(number));
        proxy.arm(fault);
        number += 1;
        for _ in 0..200 {
            if proxy.strikes() > before || told.is_over() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if number.is_multiple_of(GUST) {
            tokio::time::sleep(CALM).await;
        }
        counted = proxy.strikes();
        *faults.entry(fault.words()).or_insert(0) += counted - before;
    }
    proxy.disarm();
    end(told, running, calm, faults).await
}

/// Runs a load over a store some of whose calls are not sent, and some of whose answers are lost, until so
/// many unknown outcomes were resolved.
///
/// # Errors
/// What the store says that no repeat mends.
///
/// # Panics
/// When a task of the load does.
pub async fn of_answers(calm: Arc<dyn Store>, load: Load, wanted: u64) -> Result<Storm> {
    let lossy = Arc::new(Lossy::seeded(load.seed));
    let told = Told::new(load);
    let store = Watched::new(Arc::clone(&calm), Arc::clone(&lossy) as _);
    let running = start(&told, vec![store as _]);
    while resolved(&told) < wanted && !told.is_over() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let storm = end(told, running, &*calm, BTreeMap::new()).await?;
    let read = |number: &AtomicU64| number.load(Ordering::SeqCst);
    let faults = BTreeMap::from([
        ("call not sent, answered as unknown", read(&lossy.unsent)),
        ("answer lost", read(&lossy.unheard)),
    ]);
    Ok(Storm { faults, ..storm })
}

type Running = tokio::task::JoinHandle<Result<()>>;

fn start(told: &Arc<Told>, stores: Vec<Arc<dyn Store>>) -> Running {
    let told = Arc::clone(told);
    tokio::spawn(async move { told.run(&stores).await })
}

async fn end(
    told: Arc<Told>,
    running: Running,
    calm: &dyn Store,
    faults: BTreeMap<&'static str, u64>,
) -> Result<Storm> {
    told.end();
    running.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
    told.drain(calm).await?;
    let verdict = judge(&told, calm).await?;
    Ok(Storm { told, verdict, faults })
}

impl Report {
    /// Plays a storm as a case; its figures are kept, and what its verdict holds against the store is its
    /// failure.
    pub fn storm(
        &mut self,
        name: &str,
        seed: u64,
        run: impl FnOnce() -> Result<Storm, String> + Send + 'static,
    ) {
        let kept: Arc<Mutex<Option<Storm>>> = Arc::default();
        let keep = Arc::clone(&kept);
        self.case("faults", format!("{name}, seed {seed}"), move || {
            let storm = run()?;
            let wrong = storm.verdict.wrong.join("\n");
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(storm);
            if wrong.is_empty() { Ok(()) } else { Err(wrong) }
        });
        let storm = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(storm) = storm {
            self.coverage.add("calls of the load", storm.shares());
            self.seeds.insert("faults", seed..seed + 1);
            self.hurts.push(storm.hurt(name, seed));
        }
    }
}

impl Storm {
    fn shares(&self) -> Shares {
        let tally = &self.told.tally;
        Shares {
            succeeded: Tally::read(&tally.succeeded),
            fenced: Tally::read(&tally.fenced),
            refused: 0,
            unknown: Tally::read(&tally.unknown),
            unreached: Tally::read(&tally.unreached),
        }
    }

    fn hurt(self, name: &str, seed: u64) -> Hurt {
        let (tally, verdict) = (&self.told.tally, &self.verdict);
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let figures = vec![
            ("unknown outcomes", Tally::read(&tally.unknown)),
            ("calls with one that had committed, as the repeat told", Tally::read(&tally.had)),
            ("calls with one that had not", Tally::read(&tally.had_not)),
            ("calls with one whose answer is the same either way", Tally::read(&tally.either)),
            ("claims paused past their lease", Tally::read(&tally.pauses)),
            ("jobs acknowledged", number(verdict.acknowledged)),
            ("acknowledged and lost", number(verdict.lost)),
            ("accepted stale writes", number(verdict.stale)),
            ("claims and settlements in the history", number(verdict.history)),
        ];
        Hurt { name: name.to_owned(), seed, faults: self.faults, figures }
    }
}

/// Steps at which answers are lost by chance, before the call or after it.
#[derive(Debug)]
struct Lossy {
    draw: Mutex<Draw>,
    unsent: AtomicU64,
    unheard: AtomicU64,
}

impl Lossy {
    fn seeded(seed: u64) -> Self {
        let draw = Mutex::new(Draw::seeded(seed));
        Self { draw, unsent: AtomicU64::new(0), unheard: AtomicU64::new(0) }
    }

    fn lose(&self, number: &AtomicU64, verb: &'static str) -> Result<()> {
        let mut draw = self.draw.lock().unwrap_or_else(PoisonError::into_inner);
        if !draw.once_in(8) {
            return Ok(());
        }
        number.fetch_add(1, Ordering::SeqCst);
        Err(Error::new(ErrorKind::OutcomeUnknown, verb, "lost on purpose; repeat the call"))
    }
}

#[async_trait]
impl Steps for Lossy {
    async fn before(&self, verb: &'static str) -> Result<()> {
        self.lose(&self.unsent, verb)
    }

    async fn after(&self, verb: &'static str) -> Result<()> {
        self.lose(&self.unheard, verb)
    }
}
