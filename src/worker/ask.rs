//! Owns which queues a claim asks, and for how many jobs: in turn, and past those whose circuit breaker
//! is open. Refuses to know how a claim is sent.

use std::sync::Arc;

use leasehold_core::{ClaimRequest, LeaseLength, QueueName, WorkerId};

use super::run::rotated;
use crate::circuit::{CircuitBreakers, Pass};

/// The most jobs of one claim: more gain nothing, and their rows are in memory twice until it is answered.
const CLAIM_MAX: usize = 1_000;

/// A claim to be sent.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: ClaimRequest,
    /// The permit of a half-open breaker, for the one job of this claim.
    probe: Option<Pass>,
    /// Whether an empty answer means that no queue has a job.
    pub(super) is_all: bool,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Next {
    Ask(Box<Asked>),
    /// Every queue rests; whether each has been asked all the same and was empty.
    Rest {
        is_all: bool,
    },
}

/// Chooses the next claim.
#[derive(Debug)]
pub(super) struct Asking {
    worker: WorkerId,
    queues: Vec<QueueName>,
    lease: Option<LeaseLength>,
    breakers: Option<Arc<CircuitBreakers>>,
    claims: usize,
    /// A claim whose reply was lost.
    unanswered: Option<Box<Asked>>,
    /// The queues that were asked with a permit since the last claim without, and were empty.
    probed: Vec<QueueName>,
}

impl Asking {
    pub(super) fn new(
        worker: WorkerId,
        queues: Vec<QueueName>,
        lease: Option<LeaseLength>,
        breakers: Option<Arc<CircuitBreakers>>,
    ) -> Self {
        Self { worker, queues, lease, breakers, claims: 0, unanswered: None, probed: Vec::new() }
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Keeps a claim whose reply was lost; the very same goes next.
    pub(super) fn lost_reply(&mut self, mut asked: Box<Asked>) {
        asked.request = asked.request.repeat();
        self.unanswered = Some(asked);
    }

    /// Says that a claim gave something: what was empty may be so no longer.
    pub(super) fn found(&mut self) {
        self.probed.clear();
    }

    /// The next claim, for up to `free` jobs. A permit goes by itself, and for one job; once every queue
    /// with a permit was asked, the closed ones are, so that no empty queue keeps another waiting.
    pub(super) fn next(&mut self, free: usize) -> Next {
        if let Some(asked) = self.unanswered.take() {
            return Next::Ask(asked);
        }
        if let Some(probe) = self.probe() {
            let queue = probe.queue().clone();
            self.probed.push(queue.clone());
            return self.ask(vec![queue], 1, Some(probe), false);
        }
        let probed = std::mem::take(&mut self.probed);
        let closed =
            |queue: &&QueueName| self.breakers.as_ref().is_none_or(|all| all.is_closed(queue));
        let queues: Vec<QueueName> = self.queues.iter().filter(closed).cloned().collect();
        let is_all = self.queues.iter().all(|it| queues.contains(it) || probed.contains(it));
        if queues.is_empty() {
            return Next::Rest { is_all };
        }
        self.claims += 1;
        self.ask(rotated(&queues, self.claims), free.min(CLAIM_MAX), None, is_all)
    }

    fn probe(&self) -> Option<Pass> {
        let breakers = self.breakers.as_ref()?;
        let mut left = self.queues.iter().filter(|queue| !self.probed.contains(queue));
        left.find_map(|queue| breakers.probe(queue))
    }

    fn ask(&self, queues: Vec<QueueName>, limit: usize, probe: Option<Pass>, is_all: bool) -> Next {
        let mut request = ClaimRequest::new(self.worker, queues).limit(limit);
        request.lease = self.lease;
        Next::Ask(Box::new(Asked { request, probe, is_all }))
    }
}

impl Asked {
    /// Whether it was sent to see if a queue works again.
    pub(super) fn is_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// The leave for one of its jobs: its permit, or that of a queue whose breaker is closed.
    pub(super) fn pass(
        &mut self,
        breakers: Option<&Arc<CircuitBreakers>>,
        queue: &QueueName,
    ) -> Option<Pass> {
        self.probe.take().or_else(|| breakers?.pass(queue))
    }
}
