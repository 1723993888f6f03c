//! Owns notifications: each recipient of a version of a subject is told once, whatever dies in between.
//! Refuses to know what is told; a [`Provider`] carries it.
//!
//! Every row is stored before the first send. A send goes: note that it begins, send, then store id,
//! time and status in one write. What may be out unrecorded is asked for before it is sent again.
//! `docs/notifications.md` tells the whole.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::memory::MemoryStore;
//! use leasehold::notify::{Message, Notification, Notifier, Provider};
//! use leasehold::{Context, Failure, Handled, HandlerError, JobKind, Json, Worker, async_trait};
//!
//! #[derive(Debug)]
//! struct Pager;
//!
//! #[async_trait]
//! impl Provider for Pager {
//!     async fn send(&self, message: &Message<'_>) -> Result<String, Failure> {
//!         Ok(format!("page-{}", message.token)) // and `lookup`, where it can be asked
//!     }
//! }
//!
//! # fn main() -> Result<(), leasehold::Error> {
//! let store: Arc<dyn leasehold::Store> = Arc::new(MemoryStore::new());
//! let notifier = Arc::new(Notifier::new(store.clone(), Pager));
//! let worker = Worker::builder(store)
//!     .handler(JobKind::new("tell")?, move |context: Context, change: u64| {
//!         let notifier = notifier.clone();
//!         async move {
//!             let what = Notification::new(format!("change {change}"), 1)
//!                 .recipient("ann@example.com", Json::of("merged")?);
//!             notifier.deliver(&context, &what).await // done, tried again, or put to rest
//!         }
//!     })
//!     .build();
//! # let _ = worker;
//! # Ok(())
//! # }
//! ```

mod alert;
mod deliver;
#[cfg(feature = "webhook")]
mod http;
mod operate;
mod provider;
mod prune;
mod reconcile;
mod row;
mod rows;
#[cfg(feature = "smtp")]
mod smtp;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Json, NewJob, Result, Store};

use crate::observe::{self, Observer};

#[cfg(feature = "webhook")]
pub use http::{HttpProvider, HttpProviderBuilder};
pub use operate::Which;
pub use provider::{Looked, Message, Provider, Question};
pub use prune::{KEPT, prune};
pub use reconcile::Reconciled;
pub use row::{AttemptNote, Outcome, Row, RowStatus};
#[cfg(feature = "smtp")]
pub use smtp::{Mail, SmtpProvider, SmtpProviderBuilder};

/// Who is told what.
#[derive(Clone, Debug, PartialEq)]
struct Recipient {
    name: String,
    payload: Json,
    required: bool,
}

/// What is told of one version of a subject, to whom.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Notification {
    subject: String,
    version: i64,
    recipients: Vec<Recipient>,
}

impl Notification {
    /// Begins a notification about a version of a subject.
    pub fn new(subject: impl Into<String>, version: i64) -> Self {
        Self { subject: subject.into(), version, recipients: Vec::new() }
    }

    /// Adds a recipient that the job needs to reach.
    pub fn recipient(self, name: impl Into<String>, payload: Json) -> Self {
        self.add(name.into(), payload, true)
    }

    /// Adds a recipient without whom the job succeeds too; tried as often as the job is.
    pub fn optional(self, name: impl Into<String>, payload: Json) -> Self {
        self.add(name.into(), payload, false)
    }

    fn add(mut self, name: String, payload: Json, required: bool) -> Self {
        self.recipients.push(Recipient { name, payload, required });
        self
    }
}

/// Makes the job that sends again what turned out never to have been sent.
type Requeue = dyn Fn(&Row) -> NewJob + Send + Sync;

/// Tells recipients, each once for each version of a subject.
pub struct Notifier {
    store: Arc<dyn Store>,
    provider: Arc<dyn Provider>,
    timeout: Duration,
    settle: Duration,
    within: Duration,
    requeue: Option<Box<Requeue>>,
    observer: Arc<dyn Observer>,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Notifier {
    /// Puts a notifier together: 30 s for each call to the provider.
    pub fn new(store: Arc<dyn Store>, provider: impl Provider) -> Self {
        Self {
            store,
            provider: Arc::new(provider),
            timeout: Duration::from_secs(30),
            settle: Duration::from_secs(15 * 60),
            within: Duration::from_secs(7 * 24 * 3600),
            requeue: None,
            observer: observe::nobody(),
        }
    }

    /// Sets how long one call to the provider may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how old a sent message is when [`Notifier::reconcile`] asks the provider for it, from and to:
    /// 15 minutes and 7 days unless set. Before, a provider may not tell of it yet; after, no more.
    #[must_use]
    pub fn reconcile_between(mut self, from: Duration, to: Duration) -> Self {
        (self.settle, self.within) = (from, to);
        self
    }

    /// Sets which job sends again what was marked as sent and never was, when its own job is over; unless
    /// set a new one of the same queue, kind, lifecycle and payload.
    #[must_use]
    pub fn requeue_as(mut self, job: impl Fn(&Row) -> NewJob + Send + Sync + 'static) -> Self {
        self.requeue = Some(Box::new(job));
        self
    }

    /// Sets who is told of alerts; the metrics of this process, say.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Reads the rows of a version, in an order of their own.
    ///
    /// # Errors
    /// `Corrupt` for a document that is no notification; engine errors.
    pub async fn rows(&self, subject: &str, version: i64) -> Result<Vec<Row>> {
        let held = rows::all(self.store.records(), &row::prefix(subject, version)).await?;
        Ok(held.into_iter().map(|held| held.row).collect())
    }
}
