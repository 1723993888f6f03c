//! Owns how the suite comes by stores: what opens them, and where their clocks begin. Refuses to know engines.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_core::{Result, Timestamp};

/// Opens stores of one engine for the suite.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The engine's name in test lines.
    fn name(&self) -> &'static str;

    /// A fresh, empty store with a manual clock.
    ///
    /// # Errors
    /// What the engine says.
    async fn store(&self) -> Result<Arc<dyn LabStore>>;

    /// The same, made of one that nobody uses any more where that is cheaper.
    ///
    /// # Errors
    /// What the engine says.
    async fn anew(&self, last: Option<Arc<dyn LabStore>>) -> Result<Arc<dyn LabStore>> {
        if let Some(last) = last
            && let Some(store) = last.anew(start()).await?
        {
            return Ok(store);
        }
        self.store().await
    }
}

/// A harness by a name and what opens a fresh, empty store.
///
/// ```
/// use std::sync::Arc;
///
/// use leasehold_conformance::{harness, start};
/// use leasehold_core::{lab::LabStore, memory::MemoryStore};
///
/// let mine = harness("mine", || async {
///     Ok(Arc::new(MemoryStore::lab(start())) as Arc<dyn LabStore>)
/// });
/// assert_eq!(mine.name(), "mine");
/// ```
pub fn harness<O>(
    name: &'static str,
    open: impl Fn() -> O + Send + Sync + 'static,
) -> Arc<dyn Harness>
where
    O: Future<Output = Result<Arc<dyn LabStore>>> + Send + 'static,
{
    Arc::new(Opening { name, open })
}

/// The store in memory.
pub fn memory() -> Arc<dyn Harness> {
    harness("memory", || async { Ok(Arc::new(MemoryStore::lab(start())) as Arc<dyn LabStore>) })
}

/// Where a manual clock may begin: a time of day in 2023.
pub fn start() -> Timestamp {
    Timestamp::saturating(1_700_000_000_000_000)
}

struct Opening<F> {
    name: &'static str,
    open: F,
}

#[async_trait]
impl<F, O> Harness for Opening<F>
where
    F: Fn() -> O + Send + Sync + 'static,
    O: Future<Output = Result<Arc<dyn LabStore>>> + Send + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        (self.open)().await
    }
}
