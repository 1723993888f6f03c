//! Owns what a job may wait for: other jobs, and what becomes of it when one of them does not end
//! well. Refuses to know how waits are kept; the rules turn them into rows.

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::NewJob;
use crate::lifecycle::State;

/// What becomes of a job when one that it waits for ends other than well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnFailure {
    /// It is cancelled, and so on to those that wait for it.
    #[default]
    Cancel,
    /// It runs all the same: an end is an end.
    Run,
    /// It waits on while the failed job can be taken back by an operator's retry; cancelled when not.
    Wait,
}

impl OnFailure {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Cancel, Self::Run, Self::Wait];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Run => "run",
            Self::Wait => "wait",
        }
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// `Corrupt` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or_else(|| {
            let why = format!("{text:?} is not a policy of a wait");
            Error::new(crate::ErrorKind::Corrupt, "on_failure", why)
        })
    }

    /// What a parent's state means for the wait; `returns`: whether a retry may take it back.
    pub(crate) fn decide(self, parent: State, returns: bool) -> Decision {
        match (parent, self) {
            (State::Waiting | State::Leased, _) => Decision::Wait,
            (State::Succeeded, _) | (_, Self::Run) => Decision::Met,
            (_, Self::Wait) if returns => Decision::Wait,
            (_, Self::Wait | Self::Cancel) => Decision::Cancel,
        }
    }
}

/// What a wait has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Wait,
    Met,
    Cancel,
}

/// One job that another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The job to wait for: one of the same call, or one that exists or has existed.
    pub parent: JobId,
    /// What becomes of the waiting job when that one does not end well.
    pub on_failure: OnFailure,
}

impl NewJob {
    /// Lets the job wait for another; it may be claimed once all it waits for is over.
    ///
    /// The other is one of the same call, or one that exists or has existed. Named twice, the later
    /// word counts. A repeat of the enqueue neither adds nor compares waits.
    ///
    /// ```
    /// use leasehold_core::{JobKind, Json, NewJob, OnFailure};
    ///
    /// let fetch = NewJob::new(JobKind::new("fetch")?, Json::parse("{}")?);
    /// let parse = NewJob::new(JobKind::new("parse")?, Json::parse("{}")?)
    ///     .after(fetch.id, OnFailure::Cancel);
    /// assert_eq!(parse.after[0].parent, fetch.id);
    /// # Ok::<(), leasehold_core::Error>(())
    /// ```
    #[must_use]
    pub fn after(mut self, parent: JobId, on_failure: OnFailure) -> Self {
        match self.after.iter_mut().find(|after| after.parent == parent) {
            Some(after) => after.on_failure = on_failure,
            None => self.after.push(After { parent, on_failure }),
        }
        self
    }

    /// Puts jobs in a row: each waits for the one before it.
    pub fn chain(jobs: impl IntoIterator<Item = Self>, on_failure: OnFailure) -> Vec<Self> {
        let mut row: Vec<Self> = Vec::new();
        for job in jobs {
            let before = row.last().map(|job| job.id);
            row.push(match before {
                Some(before) => job.after(before, on_failure),
                None => job,
            });
        }
        row
    }

    /// Makes a batch: the callback waits for all of the members. It comes last in the answer.
    pub fn batch(
        members: impl IntoIterator<Item = Self>,
        callback: Self,
        on_failure: OnFailure,
    ) -> Vec<Self> {
        let mut jobs: Vec<Self> = members.into_iter().collect();
        // Said once each, so that a large batch is not compared with itself.
        let mut callback = callback;
        let members = jobs.iter().map(|job| After { parent: job.id, on_failure });
        callback.after.extend(members);
        jobs.push(callback);
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: FAN-3
    #[test]
    fn policies_decide_by_the_parents_end() {
        use OnFailure::{Cancel, Run, Wait};
        for policy in OnFailure::ALL {
            assert_eq!(OnFailure::parse(policy.as_str()).unwrap(), policy);
            assert_eq!(policy.decide(State::Waiting, true), Decision::Wait);
            assert_eq!(policy.decide(State::Leased, true), Decision::Wait);
            assert_eq!(policy.decide(State::Succeeded, false), Decision::Met);
        }
        for end in [State::Failed, State::DeadLetter, State::Cancelled] {
            for returns in [true, false] {
                assert_eq!(Cancel.decide(end, returns), Decision::Cancel);
                assert_eq!(Run.decide(end, returns), Decision::Met);
            }
            assert_eq!(Wait.decide(end, true), Decision::Wait);
            assert_eq!(Wait.decide(end, false), Decision::Cancel);
        }
        assert!(OnFailure::parse("never").is_err());
    }

    /// Proves: FAN-1
    #[test]
    fn statements_cannot_wait_for_others() {
        let job = NewJob::new(crate::JobKind::new("resize").unwrap(), crate::Json::null());
        let limits = crate::Limits::default();
        job.check_as_statements(&limits).unwrap();
        let error = job.after(JobId::new(), OnFailure::Run).check_as_statements(&limits);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(error.to_string().contains("enqueue_sql"), "{error}");
    }

    /// Proves: FAN-1
    #[test]
    fn later_word_for_one_parent_counts() {
        let kind = crate::JobKind::new("resize").unwrap();
        let parent = JobId::new();
        let job = NewJob::new(kind, crate::Json::null());
        let job = job.after(parent, OnFailure::Run).after(parent, OnFailure::Wait);
        assert_eq!(job.after, [After { parent, on_failure: OnFailure::Wait }]);
    }
}
