//! Owns a store in front of another that passes a hook before and after every verb that may write, and
//! hands the verb on. Refuses to know what a hook does: announce, wait, or never return.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::*;

use crate::hand_on::hand_on;

/// What is passed before and after each verb that may write.
#[async_trait]
pub trait Steps: fmt::Debug + Send + Sync + 'static {
    /// Passes the place before a verb; an error keeps the verb from being sent, and is its answer.
    ///
    /// # Errors
    /// What the caller is to be told.
    async fn before(&self, verb: &'static str) -> Result<()>;

    /// Passes the place after a verb; an error takes the place of its answer.
    ///
    /// # Errors
    /// What the caller is to be told.
    async fn after(&self, verb: &'static str) -> Result<()>;
}

/// A store whose every write passes [`Steps`]. What joins a transaction of the engine's own does not.
#[derive(Debug)]
pub struct Watched {
    inner: Arc<dyn Store>,
    steps: Arc<dyn Steps>,
}

impl Watched {
    /// Puts steps in front of a store.
    pub fn new(inner: Arc<dyn Store>, steps: Arc<dyn Steps>) -> Arc<Self> {
        Arc::new(Self { inner, steps })
    }

    async fn pass<T>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.steps.before(verb).await?;
        let answer = call.await;
        self.steps.after(verb).await?;
        answer
    }

    async fn read<T>(
        &self,
        _verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        call.await
    }
}

hand_on!(Watched);
