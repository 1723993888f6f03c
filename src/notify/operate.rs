//! Owns what an operator or the caller decides about a notification that the provider refuses, or that
//! nobody can tell of; each act is in the audit log, and wakes the job that rests over it.

use leasehold_core::{Actor, AuditEntry, Control, Error, ErrorKind, Json, Result};

use super::Notifier;
use super::row::{self, Row, RowStatus};
use super::rows::{self, Held};

/// How often an act is tried anew because somebody else wrote the row.
const TRIES: u32 = 8;

/// Which notification is decided about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which<'a> {
    /// What it is about.
    pub subject: &'a str,
    /// Which version of it.
    pub version: i64,
    /// Who is told.
    pub recipient: &'a str,
}

impl Notifier {
    /// Sends again to a recipient who was refused, or of whom nobody can tell whether they were told.
    ///
    /// # Errors
    /// `NotFound`; `IllegalTransition` unless it wants a decision; engine errors.
    pub async fn requeue(&self, which: Which<'_>, actor: Actor, note: &str) -> Result<()> {
        let change = |row: &mut Row| {
            (row.status, row.notified_at) = (RowStatus::Pending, None);
        };
        let row = self.decide(which, change).await?;
        self.tell(&row, actor, "notify.requeue", note).await
    }

    /// Decides that a recipient need not be told.
    ///
    /// # Errors
    /// As [`Notifier::requeue`].
    pub async fn waive(&self, which: Which<'_>, actor: Actor, note: &str) -> Result<()> {
        let row = self.decide(which, |row| row.status = RowStatus::Waived).await?;
        self.tell(&row, actor, "notify.waive", note).await
    }

    /// Tells another recipient in place of one; the payload is the old one unless given.
    ///
    /// # Errors
    /// As [`Notifier::requeue`].
    pub async fn replace(
        &self,
        which: Which<'_>,
        by: (&str, Option<Json>),
        actor: Actor,
        note: &str,
    ) -> Result<()> {
        let old = self.wanting(which).await?;
        let (recipient, payload) = by;
        let payload = payload.map_or(old.row.payload.clone(), |json| json.as_str().to_owned());
        let fresh = Row {
            token: row::token(which.subject, recipient, which.version),
            recipient: recipient.to_owned(),
            payload,
            status: RowStatus::Pending,
            planned_at: old.at(),
            send_started_at: None,
            notification_id: None,
            notified_at: None,
            confirmed_at: None,
            attempts: 0,
            log: Vec::new(),
            ..old.row
        };
        // The new row first: a crash in between leaves one too many to decide about, and none too few.
        rows::make(self.store.records(), &fresh).await?;
        let row = self.decide(which, |row| row.status = RowStatus::Replaced).await?;
        self.tell(&row, actor, "notify.replace", note).await
    }

    async fn wanting(&self, which: Which<'_>) -> Result<Held> {
        let key = row::key(which.subject, which.recipient, which.version);
        let refuse = |kind, why: &str| Error::new(kind, "decide", why).about(&key);
        let held = rows::read(self.store.records(), &key).await?;
        let held =
            held.ok_or_else(|| refuse(ErrorKind::NotFound, "there is no such notification"))?;
        match held.row.status.wants_a_person() {
            true => Ok(held),
            false => {
                let why = format!("the notification is {:?}", held.row.status);
                Err(refuse(ErrorKind::IllegalTransition, &why))
            }
        }
    }

    async fn decide(&self, which: Which<'_>, change: impl Fn(&mut Row)) -> Result<Row> {
        for _ in 0..TRIES {
            let mut held = self.wanting(which).await?;
            let at = held.at();
            change(&mut held.row);
            held.row.decided(at);
            if rows::write(self.store.records(), &mut held).await? {
                return Ok(held.row);
            }
        }
        Err(Error::new(ErrorKind::Busy, "decide", "the notification is written again and again"))
    }

    async fn tell(&self, row: &Row, actor: Actor, action: &str, note: &str) -> Result<()> {
        let target = format!("notification {}", row.key());
        let detail = format!("{} version {}: {note}", row.subject, row.version);
        let detail: String = detail.chars().filter(|c| *c != '\0').take(4_000).collect();
        let entry = AuditEntry::new(actor.clone(), action, target).detail(detail);
        self.store.records().append(entry).await?;
        self.wake(row, actor).await.map(|_| ())
    }

    /// Wakes the job of a row; `false` where it is over or gone.
    pub(super) async fn wake(&self, row: &Row, actor: Actor) -> Result<bool> {
        match self.store.control(Control::Wake { job: row.job, actor }).await {
            Ok(_) => Ok(true),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IllegalTransition) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
