//! Owns the seam to whoever carries a message: what is sent, what is asked, what is answered. Refuses
//! to know rows.

use std::fmt;

use async_trait::async_trait;
use leasehold_core::{Failure, Timestamp};

/// A message to be sent: the same one, with the same token, on every attempt.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Message<'a> {
    /// Who is told.
    pub recipient: &'a str,
    /// What is told, as JSON, byte for byte as it was planned.
    pub payload: &'a str,
    /// What the provider knows the message by: 64 hexadecimal digits.
    pub token: &'a str,
    /// What it is about.
    pub subject: &'a str,
    /// Which version of it.
    pub version: i64,
    /// When it was planned; does not change from attempt to attempt.
    pub planned_at: Timestamp,
}

/// Without what is told, and to whom.
impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("token", &self.token).finish_non_exhaustive()
    }
}

/// What a provider is asked for: a message by its token, and by the provider's id where that is known.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The message's token.
    pub token: &'a str,
    /// The provider's id.
    pub notification_id: Option<&'a str>,
}

/// What a provider knows of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// It has taken the message, under this id.
    Found(String),
    /// It has never taken it.
    Absent,
    /// It cannot be asked.
    NotOffered,
}

/// Carries messages.
///
/// A failure says what becomes of the message: one that may be tried again is; one about this
/// recipient or this message (the classes `validation`, `not_found`, `policy`) fails its row; one about
/// the provider's access or set-up (`auth`, `bug`) fails the job.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// Sends a message, and gives the provider's id of it. A provider that knows the token again
    /// sends nothing and answers as it did the first time.
    ///
    /// # Errors
    /// Why it was not sent, or may not have been.
    async fn send(&self, message: &Message<'_>) -> Result<String, Failure>;

    /// Asks whether a message was taken.
    ///
    /// # Errors
    /// Why that is not known now.
    async fn lookup(&self, _question: &Question<'_>) -> Result<Looked, Failure> {
        Ok(Looked::NotOffered)
    }
}
