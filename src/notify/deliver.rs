//! Owns the order of send and mark, row by row, and what the job does afterwards. Each step reads the
//! row anew, so that a dead or slow predecessor is seen.

use std::collections::HashSet;

use leasehold_core::{
    Error, ErrorKind, Failure, FailureClass, FailureCode, JobId, Result, State, StoreExt, Timestamp,
};
use serde::Serialize;

use super::provider::{Looked, Message, Question};
use super::row::{self, Outcome, Row, RowStatus};
use super::rows::{self, Held};
use super::{Notification, Notifier};
use crate::observe::Alert;
use crate::worker::{Context, Handled, HandlerError};

/// How often a row is read anew because somebody else wrote it.
const TRIES: u32 = 8;
/// How long a job is put off whose rows changed under its hands.
const SOON: std::time::Duration = std::time::Duration::from_secs(1);

/// How one row's turn ended.
enum Turn {
    Settled,
    /// Somebody has to decide about it.
    Stuck,
    /// Another job is sending it just now.
    Busy,
    /// To be tried again by a later attempt of the job.
    Later(Failure),
}

/// What a job that told everybody has made.
#[derive(Serialize)]
struct Report {
    subject: String,
    version: i64,
    sent: usize,
    waived: usize,
}

impl Notifier {
    /// Tells every recipient who has not been told, and says how the job ends.
    ///
    /// It succeeds once every required row of the version is sent or waived. Where the provider failed
    /// in passing it is tried again by the worker's policy; where somebody has to decide about a row, it
    /// rests until that is done ([`Notifier::requeue`], [`Notifier::replace`], [`Notifier::waive`]).
    ///
    /// # Errors
    /// The failure of this attempt: the provider's, or the store's.
    pub async fn deliver(
        &self,
        context: &Context,
        what: &Notification,
    ) -> Result<Handled, HandlerError> {
        let job = context.job().id;
        let planned = self.plan(job, what).await?;
        let mut later: Option<Failure> = None;
        for (key, required) in planned {
            if context.cancellation().is_cancelled() {
                return Err(Failure::new(FailureCode::Cancelled, "told to stop").into());
            }
            context.ensure_live(std::time::Duration::ZERO)?;
            let Turn::Later(failure) = self.turn(job, &key).await? else { continue };
            let everybody = concerns_everybody(&failure);
            if required || everybody {
                later.get_or_insert(failure);
            }
            if everybody {
                break;
            }
        }
        match later {
            Some(failure) => Err(failure.into()),
            None => self.conclusion(what).await,
        }
    }

    /// Stores every row of the version; the keys of all there are, and which the job needs.
    async fn plan(&self, job: JobId, what: &Notification) -> Result<Vec<(String, bool)>> {
        let records = self.store.records();
        let prefix = row::prefix(&what.subject, what.version);
        let now = rows::now(records, &prefix).await?;
        let known = rows::all(records, &prefix).await?;
        let known: HashSet<String> = known.iter().map(|held| held.row.key()).collect();
        for recipient in &what.recipients {
            let row = fresh(what, recipient, job, now);
            if !known.contains(&row.key()) {
                // Whoever came first has planned it; its payload stays.
                rows::make(records, &row).await?;
            }
        }
        let all = rows::all(records, &prefix).await?;
        Ok(all.into_iter().map(|held| (held.row.key(), held.row.required)).collect())
    }

    /// One row's turn, begun anew whenever somebody else wrote the row.
    async fn turn(&self, job: JobId, key: &str) -> Result<Turn> {
        for _ in 0..TRIES {
            let Some(held) = rows::read(self.store.records(), key).await? else {
                return Ok(Turn::Settled);
            };
            if let Some(turn) = self.try_turn(job, held).await? {
                return Ok(turn);
            }
        }
        let why = "the notification is written by others again and again";
        Err(Error::new(ErrorKind::Busy, "notify", why).about(key))
    }

    async fn try_turn(&self, job: JobId, mut held: Held) -> Result<Option<Turn>> {
        let doubt = held.row.is_without_trace();
        match held.row.status {
            RowStatus::Failed | RowStatus::Doubtful => return Ok(Some(Turn::Stuck)),
            status if status.is_settled() && !doubt => return Ok(Some(Turn::Settled)),
            RowStatus::Waived | RowStatus::Replaced => return Ok(Some(Turn::Settled)),
            _ => {}
        }
        if held.row.status == RowStatus::Sending && self.is_another_s(&held.row, job).await? {
            return Ok(Some(Turn::Busy));
        }
        held.row.job = job;
        if doubt || held.row.may_be_out() {
            match self.ask(&held.row).await {
                Ok(Looked::Found(id)) => {
                    return self.mark(held, &id, Outcome::Found).await.map(Some);
                }
                Ok(Looked::Absent) if doubt => {
                    self.raise(Alert::NotificationNeverSent, &held.row).await?;
                    let at = held.at();
                    held.row.clear(at);
                    // Written by the begin of the send.
                }
                Ok(Looked::NotOffered) if doubt => return self.doubt(held).await,
                Ok(Looked::Absent | Looked::NotOffered) => {}
                Err(failure) => return self.fail(held, failure, false).await.map(Some),
            }
        }
        let at = held.at();
        held.row.begin(at);
        if !rows::write(self.store.records(), &mut held).await? {
            return Ok(None);
        }
        self.send(held).await.map(Some)
    }

    /// Whether another job that began to send a row has it in hand still: its message may be on its way
    /// and not be known to the provider yet.
    async fn is_another_s(&self, row: &Row, job: JobId) -> Result<bool> {
        if row.job == job {
            return Ok(false);
        }
        let other = self.store.job(row.job).await?;
        Ok(other.is_some_and(|other| other.state == State::Leased))
    }

    /// Sends what has begun: first the provider, then the mark.
    async fn send(&self, held: Held) -> Result<Turn> {
        let row = &held.row;
        let message = Message {
            recipient: &row.recipient,
            payload: &row.payload,
            token: &row.token,
            subject: &row.subject,
            version: row.version,
            planned_at: row.planned_at,
        };
        match self.timely(self.provider.send(&message)).await {
            Ok(id) => self.mark(held, &id, Outcome::Sent).await,
            // It may have gone out all the same, and is not given up before that is known.
            Err(failure) => match self.ask(&held.row).await {
                Ok(Looked::Found(id)) => self.mark(held, &id, Outcome::Found).await,
                Ok(Looked::Absent | Looked::NotOffered) => self.fail(held, failure, true).await,
                Err(_) if failure.is_retryable() => self.fail(held, failure, false).await,
                Err(unknown) => self.fail(held, unknown, false).await,
            },
        }
    }

    /// Stores id, time and status in one write.
    async fn mark(&self, mut held: Held, id: &str, outcome: Outcome) -> Result<Turn> {
        for _ in 0..TRIES {
            let at = held.at();
            held.row.mark(id.to_owned(), at, outcome);
            if rows::write(self.store.records(), &mut held).await? {
                return Ok(Turn::Settled);
            }
            match rows::read(self.store.records(), &held.row.key()).await? {
                Some(newer) if newer.row.status == RowStatus::Sent => return Ok(Turn::Settled),
                Some(newer) => held = newer,
                None => return Ok(Turn::Settled),
            }
        }
        let why = "the mark of a sent notification is written over again and again";
        Err(Error::new(ErrorKind::Busy, "notify", why).about(held.row.key()))
    }

    /// Records a failed attempt; a failure about this recipient fails the row, once it is known that
    /// nothing went out.
    async fn fail(&self, mut held: Held, failure: Failure, known: bool) -> Result<Turn> {
        let failure = match failure.class() {
            // Two calls met; the token makes another try safe.
            FailureClass::Conflict => failure.reclassify(FailureClass::Upstream),
            _ => failure,
        };
        let everybody = concerns_everybody(&failure);
        let stuck = known && !failure.is_retryable() && !everybody;
        let at = held.at();
        match stuck {
            true => held.row.refuse(&failure, at),
            false => held.row.fail(&failure, at),
        }
        if stuck {
            self.raise(Alert::NotificationFailed, &held.row).await?;
        }
        // Where somebody else wrote the row meanwhile, theirs stands.
        rows::write(self.store.records(), &mut held).await?;
        match (stuck, failure.is_retryable() || everybody) {
            (true, _) => Ok(Turn::Stuck),
            (false, true) => Ok(Turn::Later(failure)),
            // Refused, and nobody can tell whether it was taken before: ask again later.
            (false, false) => Ok(Turn::Later(failure.reclassify(FailureClass::Upstream))),
        }
    }

    async fn doubt(&self, mut held: Held) -> Result<Option<Turn>> {
        self.raise(Alert::NotificationDoubtful, &held.row).await?;
        held.row.status = RowStatus::Doubtful;
        let written = rows::write(self.store.records(), &mut held).await?;
        Ok(written.then_some(Turn::Stuck))
    }

    /// How the job ends once each row had its turn, by the rows as they are now.
    async fn conclusion(&self, what: &Notification) -> Result<Handled, HandlerError> {
        let rows = self.rows(&what.subject, what.version).await?;
        let open = || rows.iter().filter(|row| row.required && !row.status.is_settled());
        let stuck = open().filter(|row| row.status.wants_a_person()).count();
        if stuck > 0 {
            let why = format!("{stuck} of {} notifications want a decision", rows.len());
            return Ok(Handled::rest(Failure::new(FailureCode::PolicyRejected, why)));
        }
        if open().next().is_some() {
            return Ok(Handled::snooze(SOON));
        }
        let count = |status| rows.iter().filter(|row| row.status == status).count();
        Ok(Handled::done_with(&Report {
            subject: what.subject.clone(),
            version: what.version,
            sent: count(RowStatus::Sent),
            waived: count(RowStatus::Waived),
        }))
    }

    /// Asks the provider for a message.
    pub(super) async fn ask(&self, row: &Row) -> Result<Looked, Failure> {
        let notification_id = row.notification_id.as_deref();
        let question = Question { token: &row.token, notification_id };
        self.timely(self.provider.lookup(&question)).await
    }

    async fn timely<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(FailureCode::NetworkTimeout, "the provider took too long")),
        }
    }
}

/// Whether a failure says nothing about the recipient: the way to the provider, or our access to it.
fn concerns_everybody(failure: &Failure) -> bool {
    use FailureClass::{Auth, Bug, Network, RateLimit};
    matches!(failure.class(), Network | RateLimit | Auth | Bug)
}

fn fresh(what: &Notification, to: &super::Recipient, job: JobId, now: Timestamp) -> Row {
    Row {
        token: row::token(&what.subject, &to.name, what.version),
        subject: what.subject.clone(),
        version: what.version,
        recipient: to.name.clone(),
        required: to.required,
        payload: to.payload.as_str().to_owned(),
        status: RowStatus::Pending,
        job,
        planned_at: now,
        send_started_at: None,
        notification_id: None,
        notified_at: None,
        confirmed_at: None,
        attempts: 0,
        log: Vec::new(),
    }
}
