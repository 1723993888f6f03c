//! Owns the requests a script is made of: how one is played on a store, and the text its answer is
//! compared by.

use std::fmt::Debug;
use std::time::Duration;

use leasehold_core::lab::{Ending, LabStore, RecordReply, RecordStep, Reply, Step};
use leasehold_core::{
    Admitted, ClaimRequest, Control, Enqueued, Error, EventClaimRequest, EventFence,
    EventSettlement, NewEvent, NewJob, Once, Progress, PruneRequest, Query, ReclaimRequest,
    RenewRequest, Result, Settlement,
};

use super::table::Table;

/// One step of a script.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Enqueue(Vec<NewJob>),
    Claim(ClaimRequest),
    Renew(RenewRequest),
    Progress(Vec<Progress>),
    Settle(Vec<Settlement>),
    Reclaim(ReclaimRequest),
    Publish(Vec<NewEvent>),
    ClaimEvents(EventClaimRequest),
    RenewEvents(RenewRequest<EventFence>),
    SettleEvents(Vec<EventSettlement>),
    Control(Control),
    Find(Query),
    Stats,
    Prune(PruneRequest),
    Once(Once),
    Record(RecordStep),
    Joined(Vec<Step>, Ending),
    Advance(Duration),
}

impl Request {
    /// Plays it; the text of the answer.
    pub(super) async fn play(&self, store: &dyn LabStore, table: &mut Table) -> String {
        self.keep(table);
        match self.clone() {
            Self::Enqueue(jobs) => enqueued(store.enqueue(jobs).await),
            Self::Claim(request) => {
                let claims = store.claim(request).await;
                table.keep_claims(claims.as_deref().unwrap_or_default());
                said(claims)
            }
            Self::Renew(request) => said(store.renew(request).await),
            Self::Progress(reports) => items(store.progress(reports).await),
            Self::Settle(settlements) => items(store.settle(settlements).await),
            Self::Reclaim(request) => said(store.reclaim(request).await),
            Self::Publish(events) => said(store.publish(events).await),
            Self::ClaimEvents(request) => {
                let claims = store.claim_events(request).await;
                table.keep_events(claims.as_deref().unwrap_or_default());
                said(claims)
            }
            Self::RenewEvents(request) => said(store.renew_events(request).await),
            Self::SettleEvents(settlements) => items(store.settle_events(settlements).await),
            Self::Control(act) => said(store.control(act).await),
            Self::Find(query) => said(store.find(query).await),
            Self::Stats => said(store.stats().await.map(|stats| (stats.queues, stats.outbox))),
            Self::Prune(request) => said(store.prune(request).await),
            Self::Once(request) => said(store.once(request).await),
            Self::Record(step) => record(step.play(store.records()).await),
            Self::Joined(steps, ending) => match store.play(steps, ending).await {
                Ok(replies) => replies.into_iter().map(reply).collect::<Vec<_>>().join("; "),
                Err(error) => failed(&error),
            },
            Self::Advance(by) => {
                if let Some(clock) = store.clock() {
                    clock.advance(by);
                }
                String::new()
            }
        }
    }

    fn keep(&self, table: &mut Table) {
        match self {
            Self::Enqueue(jobs) => table.keep_requests(jobs, &[], &[]),
            Self::Claim(request) => table.keep_claim(request),
            Self::Settle(settlements) => table.keep_requests(&[], &[], settlements),
            Self::Publish(events) => table.keep_requests(&[], events, &[]),
            Self::Control(Control::Replay(replay)) => table.keep_replay(replay),
            _ => {}
        }
    }
}

fn failed(error: &Error) -> String {
    let (kind, lost, job) = (error.kind(), error.lost_reason(), error.existing_job());
    format!("{kind:?} {lost:?} {job:?} restart={}", error.is_transaction_restart())
}

fn said<T: Debug>(answer: Result<T>) -> String {
    answer.map_or_else(|error| failed(&error), |answer| format!("{answer:?}"))
}

fn items<T: Debug>(answers: Result<Vec<Result<T>>>) -> String {
    match answers {
        Ok(answers) => answers.into_iter().map(said).collect::<Vec<_>>().join(", "),
        Err(error) => failed(&error),
    }
}

fn enqueued(answers: Result<Vec<Result<Enqueued>>>) -> String {
    let plain = |answer: Result<Enqueued>| {
        answer.map(|it| (it.job(), it.is_new(), it.state(), it.result().cloned()))
    };
    items(answers.map(|answers| answers.into_iter().map(plain).collect()))
}

fn admitted(answer: Result<Admitted>) -> String {
    match answer {
        Ok(Admitted::New(jobs)) => enqueued(Ok(jobs.into_iter().map(Ok).collect())),
        answer => said(answer),
    }
}

fn record(reply: RecordReply) -> String {
    match reply {
        RecordReply::Put(answer) => said(answer),
        RecordReply::Get(answer) => said(answer),
        RecordReply::Delete(answer) | RecordReply::DeleteBlob(answer) => said(answer),
        RecordReply::List(answer) => said(answer),
        RecordReply::PutBlob(answer) => said(answer),
        RecordReply::GetBlob(answer) => said(answer),
        RecordReply::Append(answer) => said(answer),
        RecordReply::Audit(answer) => said(answer),
        RecordReply::Take(answer) => said(answer),
    }
}

fn reply(reply: Reply) -> String {
    match reply {
        Reply::Done => "done".to_owned(),
        Reply::Enqueue(answers) => enqueued(answers),
        Reply::Publish(answer) => said(answer),
        Reply::Progress(answers) => items(answers),
        Reply::Settle(answers) => items(answers),
        Reply::Once(answer) => said(answer),
        Reply::Admit(answer) => admitted(answer),
        Reply::Record(reply) => record(reply),
    }
}
