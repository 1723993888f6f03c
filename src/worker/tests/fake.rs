//! Owns a store that plays a script: which jobs a claim gives, how renewals and settlements are
//! answered, and what was sent. It keeps no rules; the conformance suite holds real stores to them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::query::{Found, Page, Query};
use leasehold_core::row::{EventRow, JobRow, Lease, RequestRow};
use leasehold_core::rules::{Ids, Lifecycles, Work};
use leasehold_core::{
    Claim, ClaimId, ClaimRequest, ClaimVersion, Control, Controlled, Enqueued, Epoch, Error,
    ErrorKind, EventClaim, EventClaimRequest, EventFence, EventSettlement, EventState, Hints,
    LeaseLength, Limits, LostReason, MemoryStore, NewEvent, NewJob, Ordering, Place, Progress,
    PruneRequest, Pruned, Published, ReclaimRequest, Reclaimed, Records, RenewRequest, Renewal,
    Result, Settled, Settlement, State, Stats, StatsScope, Store, Timestamp, Verdict,
};
use tokio::sync::Notify;

/// How renewals are answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Renewing {
    #[default]
    Renewed,
    CancelRequested,
    Lost,
    Unreachable,
    Panics,
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) due: VecDeque<NewJob>,
    pub(crate) renewing: Renewing,
    /// Claims that take jobs and then lose their reply.
    pub(crate) claims_unanswered: usize,
    /// How long the answer to a claim takes once it is made up.
    pub(crate) claims_late: Duration,
    /// The same of a claim of events.
    pub(crate) events_late: Duration,
    /// Events that come due with the next settlement of a delivery.
    pub(crate) freed: Vec<NewEvent>,
    /// What the next settlements are answered with.
    pub(crate) settle_errors: VecDeque<ErrorKind>,
    /// Whether the next settlement panics.
    pub(crate) settle_panics: bool,
    /// How many connections the calls share, as far as workers can see.
    pub(crate) connections: Option<usize>,
    /// Whether acts of control and claims get no answer at all.
    pub(crate) silent: bool,
    /// What the next acts of control are answered with.
    pub(crate) control_errors: VecDeque<ErrorKind>,
    pub(crate) claims: Vec<ClaimRequest>,
    pub(crate) settled: Vec<Settlement>,
    /// How many settlements each call brought.
    pub(crate) settle_calls: Vec<usize>,
    pub(crate) reports: Vec<Progress>,
    pub(crate) renewals: usize,
    /// How many fences each renewal held.
    pub(crate) renewed: Vec<usize>,
    pub(crate) events: VecDeque<NewEvent>,
    pub(crate) event_claims: Vec<EventClaimRequest>,
    pub(crate) delivered: Vec<EventSettlement>,
    /// How much each look was to count.
    pub(crate) looks: Vec<StatsScope>,
    taken: HashMap<ClaimId, Vec<Claim>>,
    events_taken: HashMap<ClaimId, Vec<EventClaim>>,
}

impl Script {
    fn answer_renewal(&mut self, fences: usize) -> Result<Vec<Renewal>> {
        self.renewals += 1;
        self.renewed.push(fences);
        let cancel_requested = matches!(self.renewing, Renewing::CancelRequested);
        let remaining = Duration::from_secs(1);
        match self.renewing {
            Renewing::Lost => Ok(vec![Renewal::Lost(LostReason::TakenOver); fences]),
            Renewing::Unreachable => {
                Err(Error::new(ErrorKind::Unavailable, "renew", "no database"))
            }
            Renewing::Panics => panic!("no renewals today"),
            _ => Ok(vec![Renewal::Renewed { remaining, cancel_requested }; fences]),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Fake {
    pub(crate) script: Arc<Mutex<Script>>,
    /// Told of each call that gets no answer, or an error instead of one.
    refused: Arc<Notify>,
    hints: Hints,
    records: MemoryStore,
}

impl Fake {
    pub(crate) fn with(jobs: impl IntoIterator<Item = NewJob>) -> Self {
        let fake = Self::default();
        fake.script(|script| script.due.extend(jobs));
        fake
    }

    pub(crate) fn script<T>(&self, act: impl FnOnce(&mut Script) -> T) -> T {
        act(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the next call that gets no answer, or an error instead of one.
    pub(crate) async fn refused(&self) {
        self.refused.notified().await;
    }

    async fn answer(&self) {
        if self.script(|script| script.silent) {
            self.refused.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.script(|script| script.settled.iter().map(|s| s.verdict.clone()).collect())
    }
}

async fn wait(late: Duration) {
    if !late.is_zero() {
        tokio::time::sleep(late).await;
    }
}

fn unscripted<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Corrupt, "play script", "the script has no such verb"))
}

fn event_claim_of(event: NewEvent, request: &EventClaimRequest) -> Result<EventClaim> {
    let now = Timestamp::MIN;
    let id = event.id;
    let row = EventRow {
        id,
        topic: event.topic,
        ordering: Ordering::Unordered,
        sequence: None,
        payload: event.payload,
        traceparent: None,
        state: EventState::Waiting,
        ordered: false,
        run_at: now,
        attempts: 0,
        attempts_max: 10,
        version: ClaimVersion::ZERO,
        claim: None,
        last_verdict: None,
        lease: None,
        failure: None,
        created_at: now,
        updated_at: now,
        finished_at: None,
    };
    let mut work = work_at(now);
    work.load_events([row]);
    work.claim_event(id, request)
}

fn work_at(now: Timestamp) -> Work {
    let lifecycles = Arc::new(Lifecycles::shipped());
    Work::new(now, Epoch::default(), Limits::default(), lifecycles, Ids::random())
}

fn claim_of(job: NewJob, request: &ClaimRequest) -> Result<Claim> {
    let now = Timestamp::MIN;
    let length = request.lease.unwrap_or(LeaseLength::DEFAULT);
    let expires_at = now.plus(length.as_duration());
    let lease = Lease { worker: request.worker, expires_at, heartbeat_at: now, length };
    let hash = job.request_hash();
    let row = JobRow {
        id: job.id,
        queue: job.queue,
        kind: job.kind,
        lifecycle: job.lifecycle,
        revision: 1,
        state: State::Leased,
        stage: 0,
        priority: 0,
        run_at: now,
        held: false,
        again: false,
        log: false,
        attempts: 1,
        attempts_max: 5,
        executions: 1,
        version: ClaimVersion::ZERO.next(),
        claim: Some(request.claim),
        last_verdict: None,
        lease: Some(lease),
        step: 0,
        cancel_requested: false,
        transition_seq: 0,
        event_seq: 0,
        created_at: now,
        updated_at: now,
        started_at: Some(now),
        finished_at: None,
        partition: None,
    };
    let asked = RequestRow {
        job: job.id,
        payload: job.payload,
        hash,
        scope: leasehold_core::Scope::global(),
        key: None,
        subject: None,
        traceparent: job.traceparent,
    };
    work_at(now).claim_of(&row, asked.into(), None)
}

#[async_trait]
impl Store for Fake {
    async fn enqueue(&self, _: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>> {
        unscripted()
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        let late = self.script(|script| script.claims_late);
        let answer = self.script(|script| {
            script.claims.push(request.clone());
            if let (true, Some(claims)) = (request.repeat, script.taken.remove(&request.claim)) {
                return Ok(claims);
            }
            let count = request.limit.min(script.due.len());
            let jobs: Vec<_> = script.due.drain(..count).collect();
            let claims = jobs.into_iter().map(|job| claim_of(job, &request));
            let claims = claims.collect::<Result<Vec<_>>>()?;
            if script.claims_unanswered > 0 {
                script.claims_unanswered -= 1;
                script.taken.insert(request.claim, claims);
                return Err(Error::new(ErrorKind::OutcomeUnknown, "claim", "reply lost"));
            }
            Ok(claims)
        });
        wait(late).await;
        answer
    }

    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>> {
        self.script(|script| script.answer_renewal(request.fences.len()))
    }

    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>> {
        let answers = reports.iter().map(|_| Ok(())).collect();
        self.script(|script| script.reports.extend(reports));
        Ok(answers)
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>> {
        self.script(|script| {
            let mut answers = Vec::new();
            assert!(!script.settle_panics, "no settlements today");
            script.settle_calls.push(settlements.len());
            for settlement in settlements {
                script.settled.push(settlement);
                answers.push(match script.settle_errors.pop_front() {
                    Some(kind) => Err(Error::new(kind, "settle", "as scripted")),
                    None => Ok(Settled::from_parts(Place::Succeeded, false)),
                });
            }
            Ok(answers)
        })
    }

    async fn reclaim(&self, _: ReclaimRequest) -> Result<Reclaimed> {
        Ok(Reclaimed::default())
    }

    async fn publish(&self, _: Vec<NewEvent>) -> Result<Vec<Published>> {
        unscripted()
    }

    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>> {
        self.answer().await;
        let late = self.script(|script| script.events_late);
        let answer = self.script(|script| {
            script.event_claims.push(request.clone());
            let again = script.events_taken.remove(&request.claim);
            if let (true, Some(claims)) = (request.repeat, again) {
                return Ok(claims);
            }
            let count = request.limit.min(script.events.len());
            let events: Vec<_> = script.events.drain(..count).collect();
            let claims = events.into_iter().map(|event| event_claim_of(event, &request));
            let claims = claims.collect::<Result<Vec<_>>>()?;
            if script.claims_unanswered > 0 {
                script.claims_unanswered -= 1;
                script.events_taken.insert(request.claim, claims);
                return Err(Error::new(ErrorKind::OutcomeUnknown, "claim events", "reply lost"));
            }
            Ok(claims)
        });
        wait(late).await;
        answer
    }

    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.script(|script| script.answer_renewal(request.fences.len()))
    }

    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>> {
        self.script(|script| {
            let mut answers = Vec::new();
            for settlement in settlements {
                script.delivered.push(settlement);
                let freed = std::mem::take(&mut script.freed);
                script.events.extend(freed);
                answers.push(match script.settle_errors.pop_front() {
                    Some(kind) => Err(Error::new(kind, "settle", "as scripted")),
                    None => Ok(()),
                });
            }
            Ok(answers)
        })
    }

    async fn control(&self, _: Control) -> Result<Controlled> {
        self.answer().await;
        match self.script(|script| script.control_errors.pop_front()) {
            Some(kind) => {
                self.refused.notify_one();
                Err(Error::new(kind, "control", "as scripted"))
            }
            None => Ok(Controlled::Done),
        }
    }

    async fn find(&self, _: Query) -> Result<Page<Found>> {
        unscripted()
    }

    async fn look(&self, scope: StatsScope) -> Result<Stats> {
        self.script(|script| script.looks.push(scope));
        Ok(Stats::new(Timestamp::MIN, Epoch::default(), "fake"))
    }

    async fn prune(&self, _: PruneRequest) -> Result<Pruned> {
        Ok(Pruned::default())
    }

    fn connections(&self) -> Option<usize> {
        self.script(|script| script.connections)
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }

    fn records(&self) -> &dyn Records {
        &self.records
    }
}
