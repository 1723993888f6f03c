//! Owns admissions: requests that are taken once, together with the jobs that they ask for.

use std::collections::HashSet;

use super::once::{Once, Remembered};
use crate::error::{Error, Result};
use crate::job::{Enqueued, Limits, NewJob};

/// The most requests of one admission.
const REQUESTS_MAX: usize = 10;

/// Requests that must all be new, and the jobs to enqueue if they are: all of it or nothing.
///
/// ```
/// use leasehold_core::memory::MemoryStore;
/// use leasehold_core::{
///     Admission, Admitted, JobKind, Json, NewJob, Once, Records, RequestHash, Scope,
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let hash = RequestHash::of_job("paid", "", &Json::parse("7")?);
/// let told = Once::new(Scope::new("bank")?, "event-7".parse()?, hash, Json::null());
/// let book = || NewJob::new(JobKind::new("book").unwrap(), Json::null());
///
/// let first = store.admit(Admission::new([told.clone()]).jobs([book()])).await?;
/// assert!(matches!(first, Admitted::New(jobs) if jobs.len() == 1));
/// let again = store.admit(Admission::new([told]).jobs([book()])).await?; // enqueues nothing
/// assert!(matches!(again, Admitted::Known { at: 0, .. }));
/// # Ok::<(), leasehold_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Admission {
    /// What must be new, 1 to 10 of them; looked at in this order.
    pub requests: Vec<Once>,
    /// What is enqueued then.
    pub jobs: Vec<NewJob>,
}

impl Admission {
    /// Begins an admission without jobs.
    pub fn new(requests: impl IntoIterator<Item = Once>) -> Self {
        Self { requests: requests.into_iter().collect(), jobs: Vec::new() }
    }

    /// Sets the jobs.
    #[must_use]
    pub fn jobs(mut self, jobs: impl IntoIterator<Item = NewJob>) -> Self {
        self.jobs = jobs.into_iter().collect();
        self
    }

    /// Checks everything that needs no database; the jobs are checked when they are enqueued.
    ///
    /// # Errors
    /// `Invalid` without requests, with more than 10, with two of one key, and as [`Once::check`].
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let count = self.requests.len();
        if !(1..=REQUESTS_MAX).contains(&count) {
            let why = format!("{count} requests, 1 to {REQUESTS_MAX} are allowed");
            return Err(Error::invalid("admit", why));
        }
        let mut seen = HashSet::new();
        for request in &self.requests {
            request.check(limits)?;
            if !seen.insert((&request.scope, &request.key)) {
                let why = format!("the key {:?} stands twice", request.key.as_str());
                return Err(Error::invalid("admit", why));
            }
        }
        Ok(())
    }
}

/// The answer to an [`Admission`].
#[derive(Clone, Debug)]
#[must_use]
pub enum Admitted {
    /// Every request was new: they are kept, and the jobs are enqueued.
    New(Vec<Enqueued>),
    /// One was not, and nothing was written.
    Known {
        /// Which, the first of them.
        at: usize,
        /// What is kept under its key: `InProgress` or `Stored`.
        answer: Remembered,
    },
}

impl Admitted {
    /// The enqueued jobs, where all of them are; the first refusal otherwise. For stores.
    ///
    /// # Errors
    /// The first item's.
    pub fn all_of(answers: Vec<Result<Enqueued>>) -> Result<Self> {
        answers.into_iter().collect::<Result<_>>().map(Self::New)
    }
}
