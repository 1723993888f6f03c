//! Owns how many requests an endpoint gets at once, and what waits when it is slow or broken: an
//! event beyond that goes back to the outbox, until about when its turn will come.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leasehold_core::retry::random_unit;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::breaker::{Breaker, BreakerPolicy, Leave};
use crate::clock;

/// For how long an event may wait in its slot of the relay.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest that an event goes back for because others are before it.
const TURN_MAX: Duration = Duration::from_secs(60);

/// The doors to all endpoints.
#[derive(Debug)]
pub(super) struct Gates {
    concurrency: usize,
    policy: BreakerPolicy,
    doors: Mutex<HashMap<String, Arc<Door>>>,
}

#[derive(Debug)]
struct Door {
    concurrency: u32,
    slots: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    breaker: Breaker,
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
    pub(super) fn new(concurrency: usize, policy: BreakerPolicy) -> Self {
        Self { concurrency, policy, doors: Mutex::default() }
    }

    fn door(&self, name: &str) -> Arc<Door> {
        let fresh = || {
            Arc::new(Door {
                concurrency: u32::try_from(self.concurrency).unwrap_or(u32::MAX),
                slots: Arc::new(Semaphore::new(self.concurrency)),
                state: Mutex::new(State {
                    breaker: Breaker::new(self.policy),
                    latency: Duration::ZERO,
                    begun: BTreeMap::new(),
                    number: 0,
                    turn: clock::now(),
                }),
            })
        };
        Arc::clone(lock(&self.doors).entry(name.to_owned()).or_insert_with(fresh))
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
        let leave = leave.map_err(|wait| wait.mul_f64(1.0 + random_unit() / 4.0))?;
        state.number += 1;
        let number = state.number;
        state.begun.insert(number, begun);
        drop(state);
        Ok(Pass { door, number, begun, leave, is_done: false, _slot: slot })
    }
}

impl Door {
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
        }
    }
}
