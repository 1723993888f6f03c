//! Owns the acts of which schedules are made, and how each answer reads. An act's worker, claim and new
//! ids are its session's, so that what it writes does not depend on the order.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    Claim, ClaimId, ClaimRequest, ClaimVersion, Control, Epoch, Error, ErrorKind,
    EventClaimRequest, EventFence, EventId, EventSettlement, EventVerdict, Expected, Fence,
    JobFilter, JobId, NewEvent, NewJob, OnFailure, Once, OrderKey, Ordering, Paging, Progress,
    PruneRequest, PutDocument, QueueName, QueueSettings, Rate, ReclaimRequest, RecordId,
    RenewRequest, Renewal, RequestHash, Result, Scope, Settled, Settlement, StoreExt, Take,
    Verdict, VerdictKind, WorkerId,
};
use uuid::Uuid;

use super::ground::Ground;
use crate::history::Seen;
use crate::lab::{actor, event, job, job_in, json, key, lasting, passing};

/// What an act answered.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// The answer, without what is drawn anew in each run.
    pub(super) text: String,
    /// Whether it passed over everything, or asks to be run again: it has written nothing.
    pub(super) is_nothing: bool,
    /// What a history should know.
    pub(super) seen: Vec<Seen>,
}

impl Said {
    fn of(text: String) -> Self {
        Self { text, is_nothing: false, seen: Vec::new() }
    }

    fn nothing_if(mut self, is_nothing: bool) -> Self {
        self.is_nothing |= is_nothing;
        self
    }

    fn answer<T>(answer: Result<T>, shown: impl FnOnce(T) -> Self) -> Self {
        match answer {
            Ok(said) => shown(said),
            Err(error) => Self::of(refusal(&error)).nothing_if(error.kind() == ErrorKind::Busy),
        }
    }
}

fn refusal(error: &Error) -> String {
    match error.lost_reason() {
        Some(reason) => format!("lost: {reason:?}"),
        None => format!("{:?}", error.kind()),
    }
}

/// One act of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Act {
    Claim,
    ClaimTwo,
    ClaimAgain,
    Renew,
    Progress,
    Settle(VerdictKind),
    JoinedSettle(VerdictKind),
    LooseSettle(VerdictKind),
    JoinedProgress,
    Reclaim,
    Prune,
    Cancel(u8),
    Reopen,
    BumpEpoch,
    Pause,
    Limit(Option<u32>),
    StoreLimit,
    EnqueueKey,
    EnqueueOther,
    EnqueueSame,
    EnqueueNew,
    EnqueueChild,
    EnqueuePartition,
    EnqueueVersion,
    JoinedEnqueueKey,
    LooseEnqueueKey,
    Find,
    Stats,
    Publish,
    PublishSame,
    JoinedPublish,
    ClaimEvents,
    RenewEvent,
    Deliver,
    RetryEvent,
    ReclaimEvents,
    Put,
    Delete,
    Once,
    Take,
}

impl Act {
    /// Whether it passes over rows that others have locked, and may then take later ones.
    pub(super) fn passes_over(self) -> bool {
        matches!(self, Self::Claim | Self::ClaimTwo | Self::Reclaim | Self::Prune)
    }
}

pub(super) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(super) fn numbered(number: u128) -> NewJob {
    job(i64::try_from(number).unwrap_or(0)).id(JobId::from_uuid(id(number)))
}

/// The worker of a session, or of whoever came before them.
pub(super) fn worker(seat: usize) -> WorkerId {
    WorkerId::from_uuid(id(700 + seat as u128))
}

/// The claim id of a session.
pub(super) fn claim_id(seat: usize) -> ClaimId {
    ClaimId::from_uuid(id(800 + seat as u128))
}

/// Who came before the sessions.
pub(super) const BEFORE: usize = 9;

/// The claim that the first job is held by.
pub(super) fn fence() -> Fence {
    let version = ClaimVersion::new(1).expect("a version");
    Fence::from_parts(
        JobId::from_uuid(id(1)),
        version,
        claim_id(BEFORE),
        worker(BEFORE),
        Epoch::default(),
    )
}

fn event_fence() -> EventFence {
    let version = ClaimVersion::new(1).expect("a version");
    let event = EventId::from_uuid(id(21));
    EventFence::from_parts(event, version, claim_id(BEFORE), worker(BEFORE), Epoch::default())
}

pub(super) fn request(seat: usize) -> ClaimRequest {
    ClaimRequest::new(worker(seat), [QueueName::default_queue()]).claim_id(claim_id(seat))
}

pub(super) fn ordered(number: u128) -> NewEvent {
    let key = OrderKey::new("customer").expect("a key");
    let event = event(i64::try_from(number).unwrap_or(0)).ordering(Ordering::Key(key));
    event.id(EventId::from_uuid(id(number)))
}

fn verdict(kind: VerdictKind) -> Verdict {
    match kind {
        VerdictKind::Succeed => Verdict::Succeed { result: Some(json(7)) },
        VerdictKind::Retry => Verdict::Retry { failure: passing(), delay: Some(Duration::ZERO) },
        VerdictKind::Snooze => Verdict::Snooze { delay: Duration::ZERO },
        VerdictKind::Release => Verdict::Release { delay: None },
        VerdictKind::Fail => Verdict::Fail { failure: lasting() },
        VerdictKind::DeadLetter => Verdict::DeadLetter { failure: lasting() },
        _ => Verdict::Cancel { reason: None },
    }
}

/// A settlement that publishes too; its event is the claim's, whoever sends it.
pub(super) fn settlement(kind: VerdictKind) -> Settlement {
    Settlement::new(fence(), verdict(kind)).event(ordered(29))
}

fn keyed(seat: usize) -> NewJob {
    // The same request under a key, whatever its id.
    let job = numbered(1).key(key("key 1"));
    job.id(JobId::from_uuid(id(11 + seat as u128)))
}

fn claimed(claims: Vec<Claim>) -> Said {
    let nothing = claims.is_empty();
    let seen = claims.iter().map(|claim| Seen::Claimed(claim.fence)).collect();
    Said { seen, ..Said::of(format!("{claims:?}")) }.nothing_if(nothing)
}

fn settled(answer: Result<Settled>) -> Said {
    Said::answer(answer, |settled| {
        let said = Said::of(format!("{settled:?}"));
        let seen = if settled.repeated { Vec::new() } else { vec![Seen::Settled(fence())] };
        Said { seen, ..said }
    })
}

/// What the one interesting step of a script answered.
fn replied(replies: Result<Vec<Reply>>) -> Said {
    Said::answer(replies, |mut replies| match replies.pop() {
        Some(Reply::Settle(answers)) => match answers {
            Ok(mut answers) => answers.pop().map_or(Said::of(String::new()), settled),
            Err(error) => Said::answer(Err(error), |()| Said::of(String::new())),
        },
        Some(Reply::Progress(answers)) => {
            let answer = answers.and_then(|mut answers| answers.pop().unwrap_or(Ok(())));
            Said::answer(answer, |()| Said::of("reported".to_owned()))
        }
        Some(Reply::Enqueue(answers)) => {
            let answer = answers.and_then(|mut answers| answers.pop().expect("an answer"));
            enqueued(answer)
        }
        Some(Reply::Publish(answer)) => Said::answer(answer, |it| Said::of(format!("{it:?}"))),
        other => Said::of(format!("{other:?}")),
    })
}

fn enqueued(answer: Result<leasehold_core::Enqueued>) -> Said {
    Said::answer(answer, |it| {
        Said::of(format!("{} new: {} {:?} {:?}", it.job(), it.is_new(), it.state(), it.result()))
    })
}

fn shown<T: std::fmt::Debug>(answer: Result<T>) -> Said {
    Said::answer(answer, |said| Said::of(format!("{said:?}")))
}

/// Does an act as a session.
pub(super) async fn act(ground: Arc<dyn Ground>, seat: usize, act: Act) -> Said {
    let store = Arc::clone(&ground.seats()[seat].store);
    let default = QueueName::default_queue;
    let control = |act| async { shown(store.control(act).await) };
    match act {
        Act::Claim => Said::answer(store.claim(request(seat).limit(1)).await, claimed),
        Act::ClaimTwo => Said::answer(store.claim(request(seat).limit(2)).await, claimed),
        Act::ClaimAgain => {
            let again = request(BEFORE).limit(1).repeat();
            Said::answer(store.claim(again).await, claimed)
        }
        Act::Renew => Said::answer(store.renew_one(fence()).await, |renewal| {
            Said::of(format!("{renewal:?}")).nothing_if(renewal == Renewal::Locked)
        }),
        Act::Progress => {
            let report = Progress::new(fence(), 1).checkpoint(json(5)).event(ordered(28));
            shown(store.progress_one(report).await)
        }
        Act::Settle(kind) => settled(store.settle_one(settlement(kind)).await),
        Act::JoinedSettle(_) | Act::JoinedProgress | Act::JoinedEnqueueKey | Act::JoinedPublish => {
            replied(store.play(script(seat, act), Ending::Commit).await)
        }
        Act::LooseSettle(_) | Act::LooseEnqueueKey => {
            replied(ground.play_loosely(seat, script(seat, act)).await)
        }
        Act::Reclaim => Said::answer(store.reclaim(ReclaimRequest::jobs()).await, |back| {
            Said::of(format!("{back:?}")).nothing_if(back.total() == 0)
        }),
        Act::ReclaimEvents => Said::answer(store.reclaim(ReclaimRequest::events()).await, |back| {
            Said::of(format!("{back:?}")).nothing_if(back.total() == 0)
        }),
        Act::Prune => Said::answer(store.prune(PruneRequest::new()).await, |gone| {
            Said::of(format!("{gone:?}")).nothing_if(gone.total() == 0)
        }),
        Act::Cancel(number) => {
            let job = JobId::from_uuid(id(number.into()));
            control(Control::RequestCancel { job, actor: actor(), reason: None }).await
        }
        Act::Reopen => {
            control(Control::Retry { job: JobId::from_uuid(id(1)), actor: actor() }).await
        }
        Act::BumpEpoch => control(Control::BumpEpoch { actor: actor() }).await,
        Act::Pause => control(Control::Pause(default())).await,
        Act::Limit(limit) => {
            control(Control::SetQueue(default(), QueueSettings::new().limit(limit))).await
        }
        Act::StoreLimit => control(Control::SetStoreLimit(Some(1))).await,
        Act::Find => {
            let page = store.jobs(JobFilter::default(), Paging::first(9)).await;
            Said::answer(page, |page| Said::of(format!("{:?}", page.items)))
        }
        Act::Stats => shown(store.stats().await.map(|stats| stats.queues)),
        _ => write(&ground, seat, act).await,
    }
}

/// A script in a caller's transaction whose last step is the act.
fn script(seat: usize, act: Act) -> Vec<Step> {
    let step = match act {
        Act::JoinedSettle(kind) | Act::LooseSettle(kind) => Step::Settle(vec![settlement(kind)]),
        Act::JoinedProgress => Step::Progress(vec![Progress::new(fence(), 1).checkpoint(json(5))]),
        Act::JoinedPublish => Step::Publish(vec![ordered(31 + seat as u128)]),
        _ => Step::Enqueue(vec![keyed(seat)]),
    };
    vec![step]
}

/// The acts that add, and those of the outbox and of records.
async fn write(ground: &Arc<dyn Ground>, seat: usize, act: Act) -> Said {
    let store = &ground.seats()[seat].store;
    let fresh = numbered(15 + seat as u128);
    let events = EventClaimRequest::new(worker(seat)).claim_id(claim_id(seat)).limit(1);
    let settle_event = |verdict| store.settle_event(EventSettlement::new(event_fence(), verdict));
    match act {
        Act::EnqueueKey => enqueued(store.enqueue_one(keyed(seat)).await),
        Act::EnqueueOther => {
            let other = job(99).key(key("key 1")).id(JobId::from_uuid(id(11 + seat as u128)));
            enqueued(store.enqueue_one(other).await)
        }
        Act::EnqueueSame => enqueued(store.enqueue_one(numbered(1).key(key("key 1"))).await),
        Act::EnqueueNew => enqueued(store.enqueue_one(fresh).await),
        Act::EnqueueChild => {
            let after = fresh.after(JobId::from_uuid(id(1)), OnFailure::Cancel);
            enqueued(store.enqueue_one(after).await)
        }
        Act::EnqueuePartition => {
            let of = job_in("b", 1).id(JobId::from_uuid(id(15 + seat as u128)));
            enqueued(store.enqueue_one(of).await)
        }
        Act::EnqueueVersion => {
            let version = i64::try_from(seat).unwrap_or(0) + 1;
            enqueued(store.enqueue_one(fresh.subject("file", version).rerun()).await)
        }
        Act::Publish => shown(store.publish_one(ordered(31 + seat as u128)).await),
        Act::PublishSame => shown(store.publish_one(ordered(21)).await),
        Act::ClaimEvents => Said::answer(store.claim_events(events).await, |claims| {
            Said::of(format!("{claims:?}")).nothing_if(claims.is_empty())
        }),
        Act::RenewEvent => {
            let renewals = store.renew_events(RenewRequest::new([event_fence()])).await;
            Said::answer(renewals, |renewals| {
                let locked = renewals.contains(&Renewal::Locked);
                Said::of(format!("{renewals:?}")).nothing_if(locked)
            })
        }
        Act::Deliver => shown(settle_event(EventVerdict::Delivered).await),
        Act::RetryEvent => {
            let again = EventVerdict::Retry { failure: passing(), delay: Some(Duration::ZERO) };
            shown(settle_event(again).await)
        }
        _ => record(store.as_ref(), seat, act).await,
    }
}

async fn record(store: &dyn leasehold_core::lab::LabStore, seat: usize, act: Act) -> Said {
    let document = RecordId::new("files", "a").expect("a name");
    match act {
        Act::Put => {
            let body = json(i64::try_from(seat).unwrap_or(0));
            shown(store.put(PutDocument::new(document, body).expected(Expected::Version(1))).await)
        }
        Act::Delete => shown(store.delete(leasehold_core::DeleteDocument::new(document)).await),
        Act::Once => {
            let hash = RequestHash::of_job("pay", "", &json(1));
            let answer = json(i64::try_from(seat).unwrap_or(0));
            shown(store.once(Once::new(Scope::global(), key("payment"), hash, answer)).await)
        }
        _ => {
            let bucket = leasehold_core::BucketName::new("mail").expect("a name");
            shown(store.take(Take::new(bucket, Rate::per_hour(60), 1)).await)
        }
    }
}
