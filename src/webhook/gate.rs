//! Owns how many requests an endpoint gets at once, and what waits when it is slow or broken: an
//! event beyond that goes back to the outbox, until about when its turn will come.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leasehold_core::retry::random_unit;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::breaker::{Breaker, BreakerPolicy, Leave};
use crate::circuit::Circuit;
use crate::clock;
use crate::observe::Observer;

/// For how long an event may wait in its slot of the relay.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest that an event goes back for because others are before it.
const TURN_MAX: Duration = Duration::from_secs(60);

/// How many endpoints are remembered before those are let go that nothing is known against.
const DOORS_MAX: usize = 10_000;

/// The doors to all endpoints.
#[derive(Debug)]
pub(super) struct Gates {
    concurrency: usize,
    policy: BreakerPolicy,
    observer: Arc<dyn Observer>,
    doors: Mutex<HashMap<String, Arc<Door>>>,
}

#[derive(Debug)]
struct Door {
    name: String,
    observer: Arc<dyn Observer>,
    concurrency: u32,
    slots: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    breaker: Breaker,
    /// What the observer was told of the breaker.
    told: Circuit,
    /// How long a request takes, lately.
    latency: Duration,
    /// When the requests on their way began, by number.
    begun: BTreeMap<u64, Instant>,
    number: u64,
    /// When the last event that was sent back will have its turn.
    turn: Instant,
}

/// Leave to send one request.
#[derive(Debug)]
pub(super) struct Pass {
    door: Arc<Door>,
    number: u64,
    begun: Instant,
    leave: Leave,
    is_done: bool,
    _slot: OwnedSemaphorePermit,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gates {
    pub(super) fn new(
        concurrency: usize,
        policy: BreakerPolicy,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self { concurrency, policy, observer, doors: Mutex::default() }
    }

    fn door(&self, name: &str) -> Arc<Door> {
        let fresh = || {
            self.observer.endpoint_changed(None, Some(Circuit::Closed));
            Arc::new(Door {
                name: name.to_owned(),
                observer: self.observer.clone(),
                concurrency: u32::try_from(self.concurrency).unwrap_or(u32::MAX),
                slots: Arc::new(Semaphore::new(self.concurrency)),
                state: Mutex::new(State {
                    breaker: Breaker::new(self.policy),
                    told: Circuit::Closed,
                    latency: Duration::ZERO,
                    begun: BTreeMap::new(),
                    number: 0,
                    turn: clock::now(),
                }),
            })
        };
        let mut doors = lock(&self.doors);
        if doors.len() >= DOORS_MAX && !doors.contains_key(name) {
            // In nobody's hand, and closed; failures that did not open its breaker are forgotten with it.
            doors.retain(|_, door| Arc::strong_count(door) > 1 || !lock(&door.state).is_plain());
        }
        Arc::clone(doors.entry(name.to_owned()).or_insert_with(fresh))
    }

    /// Asks for leave; else how long the event has to wait.
    pub(super) async fn enter(&self, name: &str) -> Result<Pass, Duration> {
        let door = self.door(name);
        let slot = match Arc::clone(&door.slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => door.wait().await?,
        };
        let begun = clock::now();
        let mut state = lock(&door.state);
        // Not all at the very end of the wait.
        let leave = state.breaker.ask(begun);
        door.tell(&mut state);
        let leave = leave.map_err(|wait| wait.mul_f64(1.0 + random_unit() / 4.0))?;
        state.number += 1;
        let number = state.number;
        state.begun.insert(number, begun);
        drop(state);
        Ok(Pass { door, number, begun, leave, is_done: false, _slot: slot })
    }
}

impl State {
    /// Whether nothing is known against the endpoint, and nothing is on its way to it.
    fn is_plain(&self) -> bool {
        self.breaker.is_closed() && self.begun.is_empty()
    }
}

/// An endpoint that is let go counts no more.
impl Drop for Door {
    fn drop(&mut self) {
        let told = lock(&self.state).told;
        self.observer.endpoint_changed(Some(told), None);
    }
}

impl Door {
    /// Tells of a breaker that has changed.
    fn tell(&self, state: &mut State) {
        let is = Circuit::of(&state.breaker);
        if is == state.told {
            return;
        }
        if is == Circuit::Open {
            tracing::warn!("endpoint {} fails, and is left alone for a while", self.name);
        }
        self.observer.endpoint_changed(Some(state.told), Some(is));
        state.told = is;
    }

    /// Waits for a slot that will be free in a moment, or tells when the event's turn will be.
    async fn wait(&self) -> Result<OwnedSemaphorePermit, Duration> {
        let wait = self.turn(clock::now());
        if wait > PATIENCE {
            return Err(wait);
        }
        let slot = Arc::clone(&self.slots).acquire_owned();
        match tokio::time::timeout(PATIENCE, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(self.turn(clock::now()).max(PATIENCE)),
        }
    }

    fn turn(&self, now: Instant) -> Duration {
        let mut state = lock(&self.state);
        let oldest = state.begun.values().min();
        let age = oldest.map_or(Duration::ZERO, |begun| now.saturating_duration_since(*begun));
        let step = state.latency.max(age) / self.concurrency;
        state.turn = (state.turn.max(now) + step).min(now + TURN_MAX);
        state.turn.saturating_duration_since(now)
    }
}

impl Pass {
    /// Takes in how the request ended.
    pub(super) fn done(mut self, is_failure: bool) -> Duration {
        let now = clock::now();
        let took = now.saturating_duration_since(self.begun);
        let mut state = lock(&self.door.state);
        state.begun.remove(&self.number);
        state.latency = (state.latency * 3 + took) / 4;
        state.breaker.learn(now, self.leave, is_failure);
        self.door.tell(&mut state);
        drop(state);
        self.is_done = true;
        took
    }
}

/// A request that was given up tells nothing about the endpoint.
impl Drop for Pass {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = lock(&self.door.state);
            state.begun.remove(&self.number);
            state.breaker.forget(clock::now(), self.leave);
            self.door.tell(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// Counts the endpoints that it was told of.
    #[derive(Debug, Default)]
    struct Count(AtomicI64);

    impl Observer for Count {
        fn endpoint_changed(&self, was: Option<Circuit>, is: Option<Circuit>) {
            let step = i64::from(is.is_some()) - i64::from(was.is_some());
            self.0.fetch_add(step, Ordering::SeqCst);
        }
    }

    /// However many endpoints there have been, those are remembered that something is known against.
    ///
    /// Proves: WH-7, MET-1
    #[tokio::test]
    async fn endpoints_without_a_past_are_let_go() {
        let count = Arc::new(Count::default());
        let long = Duration::from_secs(600);
        let policy =
            BreakerPolicy { failure_threshold: 0.5, window: long, cooldown: long, min_samples: 1 };
        let gates = Gates::new(1, policy, count.clone());
        let _took = gates.enter("bad").await.unwrap().done(true);
        let busy = gates.enter("busy").await.unwrap();
        for number in 0..DOORS_MAX {
            drop(gates.door(&number.to_string()));
        }
        let kept = lock(&gates.doors).len();
        assert!(kept <= DOORS_MAX, "{kept}");
        assert_eq!(count.0.load(Ordering::SeqCst), i64::try_from(kept).unwrap());
        assert!(gates.enter("bad").await.is_err(), "its breaker is open");
        assert_eq!(lock(&busy.door.state).begun.len(), 1);
    }
}
