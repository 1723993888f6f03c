//! Owns the store's clock: microseconds that never go back and never stand still, over every process
//! on the file. The one place of this crate that reads the machine's clocks.
//!
//! Time is counted on the monotonic clock from a base. The row of the file is the high-water mark of
//! all processes; whoever is behind it moves up to it. The wall clock is followed by running up to a
//! tenth faster or slower; a step ahead is made only while no lease runs that it would cut short.
//! Whoever opens the file adds what has passed since somebody last wrote: see [`uptime`].

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

#[cfg(feature = "lab")]
use leasehold_core::lab::ManualClock;
use leasehold_core::{Result, Timestamp};
use rusqlite::{Connection, params};

use crate::error::corrupt;
use crate::row::Columns;
use crate::statement::{execute, row, sql};
use crate::uptime::{self, Kept};

/// How far ahead the wall must be before a step is considered, in microseconds.
const STEP_US: i64 = 100_000;
/// How far off the wall the clock may be before it is worth a warning.
const SKEW_MAX: Duration = Duration::from_secs(5);

/// How far a test has stepped the machine's wall clock, in microseconds.
#[cfg(feature = "lab")]
static STEPPED: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);

/// Steps the wall clock as this process sees it, back too; for tests.
#[cfg(feature = "lab")]
pub fn step_wall(by_us: i64) {
    STEPPED.fetch_add(by_us, std::sync::atomic::Ordering::SeqCst);
}

/// How much time has passed that no machine has waited for, in microseconds.
#[cfg(feature = "lab")]
static PASSED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Lets time pass at once, on both of the machine's clocks as this process sees them; for tests.
#[cfg(feature = "lab")]
pub fn pass(time: Duration) {
    let time_us = u64::try_from(time.as_micros()).unwrap_or(0);
    PASSED.fetch_add(time_us, std::sync::atomic::Ordering::SeqCst);
    step_wall(i64::try_from(time_us).unwrap_or(0));
}

/// The machine's steady clock.
pub(crate) fn steady() -> Instant {
    let now = Instant::now();
    #[cfg(feature = "lab")]
    let now = now + Duration::from_micros(PASSED.load(std::sync::atomic::Ordering::SeqCst));
    now
}

/// How long this thread has been waiting; a new wait begins where `first` is set.
pub(crate) fn waited(first: bool) -> Duration {
    thread_local! {
        static BEGAN: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
    }
    let now = steady();
    let began = BEGAN.get().filter(|_| !first).unwrap_or(now);
    BEGAN.set(Some(began));
    now.saturating_duration_since(began)
}

/// The machine's wall clock, in microseconds since 1970.
pub(crate) fn wall_us() -> i64 {
    let wall = Timestamp::from_system_time(SystemTime::now()).unwrap_or(Timestamp::MIN).as_micros();
    #[cfg(feature = "lab")]
    let wall = wall + STEPPED.load(std::sync::atomic::Ordering::SeqCst);
    wall
}

/// The store's clock.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Counts on the machine's monotonic clock.
    Own(Mutex<Counter>),
    /// Set by hand.
    #[cfg(feature = "lab")]
    Manual(ManualClock),
}

/// The last reading and when it was made.
#[derive(Debug)]
pub(crate) struct Counter {
    value: i64,
    at: Instant,
    resets: i64,
    /// A step to the wall that a transaction has written, and when it was made.
    kept: Option<(i64, Instant)>,
}

thread_local! {
    /// The step that this thread's transaction has made.
    static STEP: std::cell::Cell<Option<(i64, Instant)>> = const { std::cell::Cell::new(None) };
}

impl Counter {
    /// Counts on, drawn towards the wall by at most a tenth of what has passed.
    fn advance(&self, elapsed: i64, wall: i64) -> i64 {
        let straight = self.value.saturating_add(elapsed);
        let most = elapsed / 10;
        straight.saturating_add(wall.saturating_sub(straight).clamp(-most, most))
    }

    /// Goes on from a step that has landed: the file's mark has reached it.
    fn take_step(&mut self, (mark, resets): (i64, i64)) {
        let Some((value, since)) = self.kept.filter(|(value, _)| mark >= *value) else { return };
        self.kept = None;
        let passed = self.at.saturating_duration_since(since).as_micros();
        let by_now = value.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
        if resets == self.resets && by_now > self.value {
            (self.value, self.at) = (value, since);
        }
    }

    /// Takes the file's mark into account: never behind it, and down to it after a reset.
    fn reconcile(&mut self, counted: i64, (mark, resets): (i64, i64)) -> i64 {
        if resets != self.resets {
            self.resets = resets;
            return mark;
        }
        counted.max(mark)
    }
}

impl Clock {
    /// A clock that begins at the file's mark, and at what has passed since that was made; the first reading
    /// steps to the wall if it may.
    pub(crate) fn own(conn: &Connection) -> Result<Self> {
        let (mark, resets) = mark(conn)?;
        let at = steady();
        let value = mark.max(kept(conn)?.by_now(at).min(wall_us()));
        Ok(Self::Own(Mutex::new(Counter { value, at, resets, kept: None })))
    }

    /// The store's now in this transaction. Writes nothing: see [`Clock::keep`].
    pub(crate) fn now(&self, conn: &Connection) -> Result<Timestamp> {
        match self {
            Self::Own(counter) => count(counter, conn, mark(conn)?),
            #[cfg(feature = "lab")]
            Self::Manual(clock) => Ok(clock.now()),
        }
    }

    /// As [`Clock::now`], where the file's mark has been read already.
    pub(crate) fn now_after(&self, conn: &Connection, mark: (i64, i64)) -> Result<Timestamp> {
        match self {
            Self::Own(counter) => count(counter, conn, mark),
            #[cfg(feature = "lab")]
            Self::Manual(clock) => Ok(clock.now()),
        }
    }

    /// Keeps the now of a transaction that writes, for the other processes. One that writes nothing
    /// keeps nothing, so that an empty poll costs no commit and wakes nobody.
    pub(crate) fn keep(&self, conn: &Connection, now: Timestamp) -> Result<()> {
        match self {
            Self::Own(counter) => {
                let (boot, up) = uptime::at(steady());
                execute(conn, sql!("clock_keep"), params![now.as_micros(), boot, up])?;
                let mut counter = counter.lock().unwrap_or_else(PoisonError::into_inner);
                match STEP.take().filter(|(value, _)| *value == now.as_micros()) {
                    Some(step) => counter.kept = Some(step),
                    // This transaction holds the write lock, so an earlier step has not landed.
                    None => counter.kept = counter.kept.filter(|kept| kept.0 <= now.as_micros()),
                }
                Ok(())
            }
            #[cfg(feature = "lab")]
            Self::Manual(_) => Ok(()),
        }
    }

    /// Whether the clock may not be set now: a lease runs, or it is set by hand.
    pub(crate) fn is_fixed(&self, conn: &Connection, now: Timestamp) -> Result<bool> {
        match self {
            Self::Own(_) => lease_runs(conn, now.as_micros()),
            #[cfg(feature = "lab")]
            Self::Manual(_) => Ok(true),
        }
    }

    /// Sets the clock to the wall, back too; every process follows at its next reading.
    pub(crate) fn reset(&self, conn: &Connection) -> Result<()> {
        let (boot, up) = uptime::at(steady());
        execute(conn, sql!("clock_reset"), params![wall_us(), boot, up]).map(|_| ())
    }

    /// What an operator should know of this clock.
    pub(crate) fn warning(&self, now: Timestamp) -> Option<String> {
        match self {
            Self::Own(_) => {
                let wall = Timestamp::saturating(wall_us());
                let off = wall.since(now).max(now.since(wall));
                let why = || format!("the store's clock is {} s off the machine's", off.as_secs());
                (off > SKEW_MAX).then(why)
            }
            #[cfg(feature = "lab")]
            Self::Manual(_) => None,
        }
    }

    /// The time in tests; the store's own clock counts where it is `None`.
    pub(crate) fn manual_now(&self) -> Option<Timestamp> {
        match self {
            Self::Own(_) => None,
            #[cfg(feature = "lab")]
            Self::Manual(clock) => Some(clock.now()),
        }
    }

    #[cfg(feature = "lab")]
    pub(crate) fn manual(&self) -> Option<ManualClock> {
        match self {
            Self::Own(_) => None,
            Self::Manual(clock) => Some(clock.clone()),
        }
    }
}

fn count(counter: &Mutex<Counter>, conn: &Connection, stored: (i64, i64)) -> Result<Timestamp> {
    let mut counter = counter.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, wall) = (steady(), wall_us());
    counter.take_step(stored);
    let elapsed = i64::try_from((at - counter.at).as_micros()).unwrap_or(i64::MAX);
    let counted = counter.advance(elapsed, wall);
    let now = counter.reconcile(counted, stored);
    (counter.value, counter.at) = (now, at);
    STEP.set(None);
    if wall.saturating_sub(now) > STEP_US && !lease_runs(conn, now)? {
        // Nobody else knows of the step before it is stored: the wall may step back until then.
        STEP.set(Some((wall, at)));
        return Ok(Timestamp::saturating(wall));
    }
    Ok(Timestamp::saturating(now))
}

fn mark(conn: &Connection) -> Result<(i64, i64)> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.raw()?, columns.raw()?))
    };
    row(conn, sql!("clock_load"), [], read)?.ok_or_else(|| corrupt("the clock's row is gone"))
}

fn kept(conn: &Connection) -> Result<Kept> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        Ok(Kept { clock: columns.raw()?, boot: columns.raw()?, up: columns.raw()? })
    };
    row(conn, sql!("clock_kept"), [], read)?.ok_or_else(|| corrupt("the clock's row is gone"))
}

fn lease_runs(conn: &Connection, now: i64) -> Result<bool> {
    let runs = row(conn, sql!("clock_leased"), params![now], |row| Columns::of(row).raw())?;
    Ok(runs.unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(value: i64) -> Counter {
        Counter { value, at: Instant::now(), resets: 0, kept: None }
    }

    /// Proves: GLO-6
    #[test]
    fn follows_the_wall_by_a_tenth_at_most() {
        let counter = counter(1_000_000);
        assert_eq!(counter.advance(1_000, 1_001_000), 1_001_000);
        assert_eq!(counter.advance(1_000, 9_000_000), 1_001_100);
        assert_eq!(counter.advance(1_000, 0), 1_000_900);
        assert_eq!(counter.advance(0, 0), 1_000_000);
    }

    /// Proves: GLO-6
    #[test]
    fn never_behind_the_file_and_down_only_by_a_reset() {
        let mut counter = counter(50);
        assert_eq!(counter.reconcile(60, (70, 0)), 70);
        assert_eq!(counter.reconcile(80, (70, 0)), 80);
        assert_eq!(counter.reconcile(80, (10, 1)), 10);
        assert_eq!(counter.reconcile(80, (10, 1)), 80);
    }

    /// A step that landed is gone on from, unless the clock was set by hand since, or is past it already.
    ///
    /// Proves: GLO-6
    #[test]
    fn a_step_counts_once_the_file_has_it() {
        let after = |value: i64, resets: i64, stored: (i64, i64)| {
            let mut counter = counter(value);
            counter.resets = resets;
            counter.kept = Some((1_000_000_000, counter.at));
            counter.take_step(stored);
            (counter.value, counter.kept.is_some())
        };
        assert_eq!(after(50, 0, (999_999_999, 0)), (50, true), "not landed");
        assert_eq!(after(50, 0, (1_000_000_000, 0)), (1_000_000_000, false));
        assert_eq!(after(50, 0, (1_000_000_000, 1)), (50, false), "set by hand since");
        assert_eq!(after(2_000_000_000, 0, (2_000_000_000, 0)), (2_000_000_000, false));
    }
}
