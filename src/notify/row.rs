//! Owns one notification's row: what it holds, what names it, and what each step makes of it. Reads no
//! store and no clock.

use std::fmt;

use leasehold_core::{Failure, JobId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The most attempts a row tells of; earlier ones are counted only.
const LOG_MAX: usize = 50;

/// Where a notification stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowStatus {
    /// Nothing was sent.
    Pending,
    /// A send has begun, and nobody knows yet what came of it.
    Sending,
    /// It was sent, and the provider's id is kept.
    Sent,
    /// The provider refuses it for good; somebody has to requeue, replace or waive it.
    Failed,
    /// It is marked as notified without a trace, and the provider cannot be asked; as `Failed`.
    Doubtful,
    /// Somebody decided that it need not be sent.
    Waived,
    /// Another recipient's row stands in its place.
    Replaced,
}

impl RowStatus {
    /// Whether nothing is left to do for it.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Sent | Self::Waived | Self::Replaced)
    }

    /// Whether somebody has to decide.
    #[must_use]
    pub const fn wants_a_person(self) -> bool {
        matches!(self, Self::Failed | Self::Doubtful)
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It has begun; its end was never stored where this stays.
    Begun,
    /// The provider took it.
    Sent,
    /// The provider had it already.
    Found,
    /// It failed, and is tried again.
    Failed,
    /// It failed for good.
    Refused,
    /// It was marked as notified, and the provider has never heard of it.
    NeverSent,
    /// Somebody decided about it.
    Decided,
}

/// One attempt: when, how it ended, and the class and code of its failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptNote {
    /// Which attempt of the row it was, from 1.
    pub attempt: u32,
    /// When it began, or what was found was found; by the store's clock.
    pub at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// The class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The failure's message, sanitized and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What one recipient is told of one version of a subject.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// What it is about.
    pub subject: String,
    /// Which version of it.
    pub version: i64,
    /// Who is told.
    pub recipient: String,
    /// Whether the job needs it to succeed.
    pub required: bool,
    /// What is told, as JSON; the same bytes on every attempt.
    pub payload: String,
    /// What the provider knows the message by, derived from subject, recipient and version.
    pub token: String,
    /// Where it stands.
    pub status: RowStatus,
    /// The job that sends it.
    pub job: JobId,
    /// When the row was made.
    pub planned_at: Timestamp,
    /// When its first send began.
    pub send_started_at: Option<Timestamp>,
    /// The provider's id of the message.
    pub notification_id: Option<String>,
    /// When it was sent.
    pub notified_at: Option<Timestamp>,
    /// When the provider confirmed it on being asked.
    pub confirmed_at: Option<Timestamp>,
    /// How many sends have begun.
    pub attempts: u32,
    /// The last attempts, up to 50.
    pub log: Vec<AttemptNote>,
}

/// Without what is told, and to whom.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("subject", &self.subject)
            .field("version", &self.version)
            .field("status", &self.status)
            .field("attempts", &self.attempts)
            .field("notification_id", &self.notification_id)
            .finish_non_exhaustive()
    }
}

/// A digest of parts, each behind its length, in lower-case hex.
fn digest(domain: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the provider knows a message by.
pub(super) fn token(subject: &str, recipient: &str, version: i64) -> String {
    let parts = [subject.as_bytes(), recipient.as_bytes(), &version.to_be_bytes()];
    digest("leasehold.notify.token", &parts)
}

/// How the keys of a version's rows begin; versions are in order within a subject.
pub(super) fn prefix(subject: &str, version: i64) -> String {
    let subject = digest("leasehold.notify.subject", &[subject.as_bytes()]);
    // Its sign turned over, a version's order is that of its digits.
    let version = (version as u64) ^ (1 << 63);
    format!("{subject}/{version:020}/")
}

/// The key of a row: one for each subject, recipient and version.
pub(super) fn key(subject: &str, recipient: &str, version: i64) -> String {
    let recipient = digest("leasehold.notify.recipient", &[recipient.as_bytes()]);
    format!("{}{recipient}", prefix(subject, version))
}

impl Row {
    pub(super) fn key(&self) -> String {
        key(&self.subject, &self.recipient, self.version)
    }

    /// Whether a send may have happened that nobody has recorded.
    pub(super) fn may_be_out(&self) -> bool {
        self.send_started_at.is_some() && !self.status.is_settled()
    }

    /// Whether it says that it was sent and has nothing to show for it.
    pub(super) fn is_without_trace(&self) -> bool {
        self.notified_at.is_some() && self.notification_id.is_none()
    }

    /// Whether its marks were taken back, and nothing was tried since.
    pub(super) fn was_cleared(&self) -> bool {
        self.log.last().is_some_and(|last| last.outcome == Outcome::NeverSent)
    }

    pub(super) fn begin(&mut self, at: Timestamp) {
        self.send_started_at.get_or_insert(at);
        self.status = RowStatus::Sending;
        self.attempts = self.attempts.saturating_add(1);
        self.note(at, Outcome::Begun, None);
    }

    /// The mark: id, time and status go into the same write.
    pub(super) fn mark(&mut self, id: String, at: Timestamp, outcome: Outcome) {
        self.notification_id = Some(id);
        self.notified_at.get_or_insert(at);
        self.status = RowStatus::Sent;
        self.end(at, outcome, None);
        if outcome == Outcome::Found {
            self.confirmed_at = Some(at);
        }
    }

    pub(super) fn fail(&mut self, failure: &Failure, at: Timestamp) {
        self.end(at, Outcome::Failed, Some(failure));
    }

    pub(super) fn refuse(&mut self, failure: &Failure, at: Timestamp) {
        self.status = RowStatus::Failed;
        self.end(at, Outcome::Refused, Some(failure));
    }

    /// Takes the marks of a message back that the provider has never heard of.
    pub(super) fn clear(&mut self, at: Timestamp) {
        (self.notification_id, self.notified_at, self.confirmed_at) = (None, None, None);
        self.status = RowStatus::Pending;
        self.note(at, Outcome::NeverSent, None);
    }

    pub(super) fn decided(&mut self, at: Timestamp) {
        self.note(at, Outcome::Decided, None);
    }

    /// Ends the attempt that has begun, or notes what was learnt without one.
    fn end(&mut self, at: Timestamp, outcome: Outcome, failure: Option<&Failure>) {
        if self.log.last().is_some_and(|last| last.outcome == Outcome::Begun)
            && outcome != Outcome::Found
        {
            self.log.pop();
        }
        self.note(at, outcome, failure);
    }

    fn note(&mut self, at: Timestamp, outcome: Outcome, failure: Option<&Failure>) {
        self.log.push(AttemptNote {
            attempt: self.attempts,
            at,
            outcome,
            class: failure.map(|failure| failure.class().id().to_owned()),
            code: failure.map(|failure| failure.code_id().to_owned()),
            message: failure.map(|failure| failure.message().chars().take(500).collect()),
        });
        let surplus = self.log.len().saturating_sub(LOG_MAX);
        self.log.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: DEL-1, DEL-2
    #[test]
    fn each_subject_recipient_and_version_has_a_name_and_a_token_of_its_own() {
        let triples = [
            ("a", "bc", 1),
            ("ab", "c", 1),
            ("a", "bc", 2),
            ("a", "bc", -1),
            ("a/", "bc", 1),
            ("", "abc", 1),
        ];
        let mut keys: Vec<String> = triples.iter().map(|(s, r, v)| key(s, r, *v)).collect();
        let mut tokens: Vec<String> = triples.iter().map(|(s, r, v)| token(s, r, *v)).collect();
        for all in [&mut keys, &mut tokens] {
            all.sort();
            all.dedup();
            assert_eq!(all.len(), triples.len());
        }
        assert!(keys.iter().all(|key| key.len() <= 255));
        // Known from an independent computation of the same bytes.
        assert_eq!(
            token("change 7", "ann@example.com", 3),
            "95061438848ffea3cc2e4570f97dc683fbaf1b28ece364cbf2ecbe79c4545160"
        );
    }

    #[test]
    fn versions_are_listed_in_their_order() {
        let keys: Vec<String> =
            [i64::MIN, -5, 0, 9, 10, i64::MAX].iter().map(|v| prefix("s", *v)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
}
