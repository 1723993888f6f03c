//! Owns one harm at one durable step of a worker: killed there, paused there until told otherwise, or its
//! answer lost. Refuses to know which verb it is, but for renewals, which come when they like.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

use super::watched::Steps;

/// What happens at the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// The worker ends before the step is sent.
    KilledBefore,
    /// The worker ends when the step is stored, before it hears of it.
    KilledAfter,
    /// The step is stored, and its answer is lost.
    ReplyLost,
    /// The worker stands still before the step until its lease has run out and another has worked.
    PausedBefore,
    /// The same after the step, before it hears of it.
    PausedAfter,
}

impl Harm {
    /// Every harm.
    pub const ALL: [Self; 5] = [
        Self::KilledBefore,
        Self::KilledAfter,
        Self::ReplyLost,
        Self::PausedBefore,
        Self::PausedAfter,
    ];

    /// Whether the worker is gone after it.
    pub const fn kills(self) -> bool {
        matches!(self, Self::KilledBefore | Self::KilledAfter)
    }

    /// Whether the worker goes on only when told to.
    pub const fn pauses(self) -> bool {
        matches!(self, Self::PausedBefore | Self::PausedAfter)
    }

    const fn is_before(self) -> bool {
        matches!(self, Self::KilledBefore | Self::PausedBefore)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Killed,
}

/// The steps of one worker, at one of which it is harmed.
#[derive(Debug)]
pub struct Harmed {
    harm: Option<(Harm, usize)>,
    passed: Mutex<Vec<String>>,
    state: watch::Sender<State>,
    struck: watch::Sender<Option<String>>,
}

impl Harmed {
    /// Harms at the `step`-th durable step, from 1.
    pub fn at(harm: Harm, step: usize) -> Self {
        Self::of(Some((harm, step)))
    }

    /// Harms nobody.
    pub fn not() -> Self {
        Self::of(None)
    }

    fn of(harm: Option<(Harm, usize)>) -> Self {
        let (state, struck) = (watch::Sender::new(State::Running), watch::Sender::new(None));
        Self { harm, passed: Mutex::default(), state, struck }
    }

    /// Passes a durable step of a handler's own, one beside the store: call it right after the effect.
    pub async fn effect(&self, name: &str) {
        let here = self.pass(name);
        if let Some(harm) = here {
            self.strike(harm, name);
        }
        self.until_running().await;
    }

    /// Waits until the harm is done; the step's name.
    pub async fn until_struck(&self) -> String {
        let mut struck = self.struck.subscribe();
        let name = struck.wait_for(Option::is_some).await.ok().and_then(|name| name.clone());
        match name {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }

    /// Lets a paused worker go on.
    pub fn go_on(&self) {
        self.state.send_if_modified(|state| {
            let was_paused = *state == State::Paused;
            if was_paused {
                *state = State::Running;
            }
            was_paused
        });
    }

    /// The names of the steps passed so far.
    pub fn passed(&self) -> Vec<String> {
        self.names().clone()
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a step; the harm that is due at it.
    fn pass(&self, name: &str) -> Option<Harm> {
        let mut passed = self.names();
        passed.push(name.to_owned());
        self.harm.filter(|(_, at)| *at == passed.len()).map(|(harm, _)| harm)
    }

    /// Whether the step passed last is the one, and its harm is of the other side.
    fn is_due_after(&self) -> Option<Harm> {
        let due = self.harm.filter(|(harm, at)| {
            !harm.is_before() && self.struck.borrow().is_none() && self.names().len() == *at
        });
        due.map(|(harm, _)| harm)
    }

    fn strike(&self, harm: Harm, name: &str) {
        if harm.kills() {
            self.state.send_replace(State::Killed);
        } else if harm.pauses() {
            self.state.send_replace(State::Paused);
        }
        self.struck.send_replace(Some(name.to_owned()));
    }

    /// Waits as long as the worker stands still; for ever once it was killed.
    async fn until_running(&self) {
        let mut state = self.state.subscribe();
        if state.wait_for(|state| *state == State::Running).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A renewal of a dead worker has nobody to wait for it, and blocks no thread.
    async fn until_renewable(&self) -> Result<()> {
        let mut state = self.state.subscribe();
        match state.wait_for(|state| *state != State::Paused).await.map(|state| *state) {
            Ok(State::Running) => Ok(()),
            _ => Err(Error::new(ErrorKind::Unavailable, "renew", "the worker is gone")),
        }
    }
}

fn is_renewal(verb: &str) -> bool {
    verb.starts_with("renew")
}

#[async_trait]
impl Steps for Harmed {
    async fn before(&self, verb: &'static str) -> Result<()> {
        if is_renewal(verb) {
            return self.until_renewable().await;
        }
        self.until_running().await;
        if let Some(harm) = self.pass(verb).filter(|harm| harm.is_before()) {
            self.strike(harm, verb);
            self.until_running().await;
        }
        Ok(())
    }

    async fn after(&self, verb: &'static str) -> Result<()> {
        if is_renewal(verb) {
            return self.until_renewable().await;
        }
        if let Some(harm) = self.is_due_after() {
            self.strike(harm, verb);
            if harm == Harm::ReplyLost {
                let why = "the reply was lost on purpose; repeat the call";
                return Err(Error::new(ErrorKind::OutcomeUnknown, verb, why));
            }
        }
        self.until_running().await;
        Ok(())
    }
}
