//! Owns what the rules have to be told besides locked rows: what exists under new ids and keys, the
//! registered lifecycles, and where fresh ids come from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::error::Result;
use crate::id::{EventId, JobId};
use crate::json::Json;
use crate::lifecycle::{Lifecycle, Place, State, Verb};
use crate::name::{IdempotencyKey, LifecycleName, QueueName, Scope, Topic};
use crate::request_hash::RequestHash;
use crate::time::Timestamp;

/// What exists under the ids and keys that new rows name; what is missing here is free.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Known {
    /// Jobs by id, pruned ones (by their tombstone) included.
    pub jobs: BTreeMap<JobId, KnownJob>,
    /// Keys by scope and key.
    pub keys: BTreeMap<(Scope, IdempotencyKey), KnownKey>,
    /// Events by id.
    pub events: BTreeMap<EventId, KnownEvent>,
    /// What is known of the subjects that are to be run again.
    pub subjects: BTreeMap<String, KnownSubject>,
    /// The transition log setting of queues that have one.
    pub queue_logs: BTreeMap<QueueName, Option<bool>>,
}

/// A job that exists.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the row's")]
pub struct KnownJob {
    pub hash: RequestHash,
    pub state: State,
}

/// What is known of a subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownSubject {
    /// The version and the job of its latest rerun, which outlast that job.
    pub mark: Option<(i64, JobId)>,
    /// At least its jobs of each version asked for and one of its highest version, pruned ones (by
    /// their tombstone) included; by version and job.
    pub runs: Vec<KnownRun>,
}

impl KnownSubject {
    /// Adds a job, once.
    pub fn add(&mut self, run: KnownRun) {
        let at = self.runs.partition_point(|it| (it.version, it.job) < (run.version, run.job));
        match self.runs.get_mut(at) {
            Some(it) if it.job == run.job => it.result = it.result.take().or(run.result),
            _ => self.runs.insert(at, run),
        }
    }
}

/// One job about a subject.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the rows'")]
pub struct KnownRun {
    pub version: i64,
    pub job: JobId,
    pub state: State,
    pub result: Option<Json>,
}

/// A key that is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownKey {
    /// Who holds it.
    pub job: JobId,
    /// The request it was taken by.
    pub hash: RequestHash,
    /// When it lapses.
    pub expires_at: Option<Timestamp>,
    /// The holder's state; `None` when the job is gone.
    pub state: Option<State>,
}

/// An event that exists.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the row's")]
pub struct KnownEvent {
    pub topic: Topic,
    pub payload: Json,
    pub sequence: Option<i64>,
}

impl Known {
    pub(super) fn extend(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.keys.extend(other.keys);
        self.events.extend(other.events);
        self.subjects.extend(other.subjects);
        self.queue_logs.extend(other.queue_logs);
    }
}

/// The lifecycles that a database has registered.
#[derive(Clone, Debug, Default)]
pub struct Lifecycles {
    by_name: BTreeMap<LifecycleName, BTreeMap<u32, Arc<Lifecycle>>>,
}

impl Lifecycles {
    /// The shipped ones.
    pub fn shipped() -> Self {
        let mut it = Self::default();
        for lifecycle in Lifecycle::shipped() {
            it.insert(lifecycle);
        }
        it
    }

    /// Reads stored definitions.
    ///
    /// # Errors
    /// `Corrupt` when one cannot be read.
    pub fn from_stored<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut it = Self::default();
        for text in texts {
            it.insert(Lifecycle::from_json(text)?);
        }
        Ok(it)
    }

    /// Adds one.
    pub fn insert(&mut self, lifecycle: Lifecycle) {
        let revisions = self.by_name.entry(lifecycle.name().clone()).or_default();
        revisions.insert(lifecycle.revision(), Arc::new(lifecycle));
    }

    /// One by name and revision.
    pub fn get(&self, name: &LifecycleName, revision: u32) -> Option<&Arc<Lifecycle>> {
        self.by_name.get(name)?.get(&revision)
    }

    /// The newest revision of one.
    pub fn newest(&self, name: &LifecycleName) -> Option<&Arc<Lifecycle>> {
        self.by_name.get(name)?.values().next_back()
    }

    /// Those in which a success ends a job from its first stage and publishes nothing by itself.
    pub fn plain_in_success(&self) -> impl Iterator<Item = &Lifecycle> {
        self.iter().map(|it| &**it).filter(|it| {
            let ends = it.after(Place::Leased(0), Verb::Succeed) == Some(Place::Succeeded);
            ends && it.events_topic().is_none()
        })
    }

    /// All of them, by name and revision.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Lifecycle>> {
        self.by_name.values().flat_map(BTreeMap::values)
    }
}

type Source = dyn Fn() -> Uuid + Send + Sync;

/// Where the ids of rows come from that the rules make themselves.
#[derive(Clone)]
pub struct Ids(Arc<Source>);

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

impl Ids {
    /// UUIDv7 by the machine's clock.
    pub fn random() -> Self {
        Self(Arc::new(Uuid::now_v7))
    }

    /// Numbered ids, the same in every run.
    #[cfg(feature = "lab")]
    pub fn numbered() -> Self {
        Self::numbered_from(1)
    }

    /// Numbered ids from a number on.
    #[cfg(feature = "lab")]
    pub fn numbered_from(first: u64) -> Self {
        let next = std::sync::atomic::AtomicU64::new(first);
        Self(Arc::new(move || {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Uuid::from_u64_pair(0x0000_0000_0000_7000, 0x8000_0000_0000_0000 | number)
        }))
    }

    /// A fresh id.
    pub fn next(&self) -> Uuid {
        (self.0)()
    }
}
