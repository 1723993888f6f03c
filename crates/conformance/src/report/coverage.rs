//! Owns what the generators came to: how many operations of which verb succeeded, were fenced, refused or
//! left unknown, counted by a store in front of the one under test. Refuses to know what should have been.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold_core::lab::{Dump, Ending, LabStore, ManualClock, Reply, Step};
use leasehold_core::*;

use crate::Harness;
use crate::hand_on::hand_on;

/// How often what was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Operations done.
    pub succeeded: u64,
    /// Operations refused over a fence.
    pub fenced: u64,
    /// Operations refused for another reason that no repeat mends.
    pub refused: u64,
    /// Operations whose outcome was unknown.
    pub unknown: u64,
    /// Operations that were busy or did not reach the store.
    pub unreached: u64,
}

impl Shares {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.succeeded + self.fenced + self.refused + self.unknown + self.unreached
    }

    /// The figures with their names.
    pub const fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("succeeded", self.succeeded),
            ("fenced", self.fenced),
            ("refused", self.refused),
            ("unknown", self.unknown),
            ("unreached", self.unreached),
        ]
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            fenced: self.fenced + other.fenced,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            unreached: self.unreached + other.unreached,
        }
    }

    fn failed(&mut self, error: &Error) {
        if error.is_fence_lost() {
            self.fenced += 1;
        } else if error.kind() == ErrorKind::OutcomeUnknown {
            self.unknown += 1;
        } else if error.is_retryable() {
            self.unreached += 1;
        } else {
            self.refused += 1;
        }
    }
}

/// The operations of a run, by the group of cases and the verb.
#[derive(Debug, Default)]
pub struct Coverage(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    group: &'static str,
    shares: BTreeMap<(&'static str, &'static str), Shares>,
}

impl Coverage {
    /// What is counted from now on is of this group.
    pub fn begin(&self, group: &'static str) {
        self.counts().group = group;
    }

    /// Adds operations that were counted elsewhere.
    pub fn add(&self, verb: &'static str, more: Shares) {
        let mut counts = self.counts();
        let at = (counts.group, verb);
        let shares = counts.shares.entry(at).or_default();
        *shares = shares.plus(more);
    }

    /// Every group and verb with its figures.
    pub fn all(&self) -> Vec<(&'static str, &'static str, Shares)> {
        self.counts()
            .shares
            .iter()
            .map(|((group, verb), shares)| (*group, *verb, *shares))
            .collect()
    }

    /// All operations together.
    pub fn sum(&self) -> Shares {
        self.counts().shares.values().fold(Shares::default(), |sum, more| sum.plus(*more))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A harness whose stores count what they answer.
pub fn counting(harness: &Arc<dyn Harness>, coverage: &Arc<Coverage>) -> Arc<dyn Harness> {
    Arc::new(Counting { inner: Arc::clone(harness), coverage: Arc::clone(coverage) })
}

struct Counting {
    inner: Arc<dyn Harness>,
    coverage: Arc<Coverage>,
}

#[async_trait]
impl Harness for Counting {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let inner = self.inner.store().await?;
        Ok(Arc::new(Counted { inner, coverage: Arc::clone(&self.coverage) }))
    }
}

/// A store that counts its answers.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn LabStore>,
    coverage: Arc<Coverage>,
}

impl Counted {
    async fn pass<T: Answer>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let answer = call.await;
        let mut shares = Shares::default();
        match &answer {
            Ok(answer) => answer.count(&mut shares),
            Err(error) => shares.failed(error),
        }
        self.coverage.add(verb, shares);
        answer
    }

    async fn read<T: Answer>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.pass(verb, call).await
    }
}

hand_on!(Counted);

#[async_trait]
impl LabStore for Counted {
    fn clock(&self) -> Option<ManualClock> {
        self.inner.clock()
    }

    async fn dump(&self) -> Result<Dump> {
        self.inner.dump().await
    }

    async fn anew(&self, start: Timestamp) -> Result<Option<Arc<dyn LabStore>>> {
        let Some(inner) = self.inner.anew(start).await? else { return Ok(None) };
        Ok(Some(Arc::new(Self { inner, coverage: Arc::clone(&self.coverage) })))
    }

    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        self.inner.play(script, ending).await
    }
}

/// An answer whose parts may have failed each by itself.
trait Answer {
    fn count(&self, shares: &mut Shares);
}

impl<T> Answer for Vec<Result<T>> {
    fn count(&self, shares: &mut Shares) {
        for part in self {
            match part {
                Ok(_) => shares.succeeded += 1,
                Err(error) => shares.failed(error),
            }
        }
    }
}

impl Answer for Vec<Renewal> {
    fn count(&self, shares: &mut Shares) {
        for part in self {
            match part {
                Renewal::Renewed { .. } => shares.succeeded += 1,
                Renewal::Lost(_) => shares.fenced += 1,
                Renewal::Locked => shares.unreached += 1,
            }
        }
    }
}

/// Answers that are whole or not at all.
macro_rules! whole {
    ($($kind:ty),* $(,)?) => {$(
        impl Answer for $kind {
            fn count(&self, shares: &mut Shares) {
                shares.succeeded += 1;
            }
        }
    )*};
}

whole!(
    (),
    bool,
    Vec<Claim>,
    Vec<Published>,
    Vec<EventClaim>,
    Reclaimed,
    Controlled,
    Pruned,
    Stats,
    Page<Found>,
    Page<AuditView>,
    Document,
    DocumentPage,
    Option<Document>,
    Option<Vec<u8>>,
    AuditId,
    Remembered,
    Admitted,
    Taken,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_answer_is_counted_as_what_it_was() -> Result<()> {
        let coverage = Arc::new(Coverage::default());
        let store = counting(&crate::memory(), &coverage).store().await?;
        coverage.begin("mine");
        let kind = JobKind::new("resize")?;
        assert!(store.enqueue_one(NewJob::new(kind, Json::null())).await?.is_new());
        let asked = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
        let fence = store.claim(asked).await?.remove(0).fence;
        let done = Settlement::new(fence, Verdict::Release { delay: None });
        assert!(!store.settle_one(done).await?.repeated);
        let late = Settlement::new(fence, Verdict::Succeed { result: None });
        assert!(store.settle_one(late).await.is_err_and(|error| error.is_fence_lost()));
        let retry = Control::Retry { job: JobId::new(), actor: Actor::new("me")? };
        assert!(store.control(retry).await.is_err());
        let all = coverage.all();
        let of = |verb| all.iter().find(|(_, of, _)| *of == verb).map(|(.., shares)| *shares);
        let plain = Shares { succeeded: 1, ..Shares::default() };
        assert_eq!((of("enqueue"), of("claim")), (Some(plain), Some(plain)), "{all:?}");
        assert_eq!(of("settle"), Some(Shares { fenced: 1, ..plain }), "{all:?}");
        assert_eq!(of("control"), Some(Shares { refused: 1, ..Shares::default() }), "{all:?}");
        assert!(all.iter().all(|(group, ..)| *group == "mine"), "{all:?}");
        Ok(())
    }
}
