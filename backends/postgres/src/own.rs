//! Owns a transaction of the store's own on a pooled connection: its begin goes out together with the
//! first statements, and it rolls back unless it was committed. Refuses to know what runs inside.

use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Client;
use futures_util::FutureExt;
use futures_util::future::join;
use leasehold_core::{Error, ErrorKind, Result};

use crate::error::{self, engine};
use crate::pool::SETTINGS;
use crate::schema::sent;
use crate::step::{self, Step};
use crate::write::News;

/// What a transaction that is sent at once sets for its writes to see.
const AT_ONCE: &str = "set local leasehold_own.at_once = 'on'";

/// One transaction of the store's own.
#[derive(Debug)]
pub(crate) struct Own<'c> {
    client: &'c Client,
    /// Whether the connection is another's after each transaction, and keeps no settings.
    behind_pooler: bool,
    begun: AtomicBool,
    open: AtomicBool,
    /// Whom to wake after the commit.
    pub(crate) news: News,
}

impl<'c> Own<'c> {
    pub(crate) fn on(client: &'c Client, behind_pooler: bool) -> Self {
        let (begun, open) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { client, behind_pooler, begun, open, news: News::default() }
    }

    /// Begins, unless it has. What is sent along with it must be harmless should it fail, so it may not
    /// write.
    pub(crate) async fn begin(&self) -> Result<()> {
        if self.has_begun() {
            return Ok(());
        }
        self.begin_with(if self.behind_pooler { SETTINGS } else { "" }).await
    }

    async fn begin_with(&self, settings: &str) -> Result<()> {
        let text = format!("begin isolation level read committed; {settings}");
        let step = Step::begin("begin").await;
        self.open.store(true, Ordering::Relaxed);
        let instead = step::fault();
        let text = instead.as_deref().unwrap_or_else(|| sent("begin", &text));
        let begun = self.client.batch_execute(text).await;
        step.end();
        self.begun.store(begun.is_ok(), Ordering::Relaxed);
        begun.map_err(engine)
    }

    /// Whether it has begun, for all that is known.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Commits, where that has not happened already; whom to wake now.
    pub(crate) async fn commit(self) -> Result<News> {
        if self.open.load(Ordering::Relaxed) {
            self.end().await?;
        }
        Ok(self.into_news())
    }

    /// Sends the commit along with the last writes. Each of these is sent when it is first polled, and
    /// tells by an error of the server's when it cannot be done, upon which the commit takes all back.
    pub(crate) async fn commit_along(
        &self,
        writes: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let (written, ended) = join(writes, self.end()).await;
        match ended {
            // Then nobody knows, whatever became of the other replies.
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Err(error),
            ended => written.and(ended),
        }
    }

    /// Sends a whole transaction at once, on the terms of [`Self::commit_along`]. Should the begin fail
    /// alone, each write would be a transaction by itself: they have to ask for what the begin sets.
    pub(crate) async fn at_once<T>(self, writes: impl Future<Output = Result<T>>) -> Result<T> {
        let mut answer = None;
        let kept = async {
            answer = Some(writes.await?);
            Ok(())
        };
        let (begun, ended) = join(self.begin_with(AT_ONCE), self.commit_along(kept)).await;
        match ended {
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Err(error),
            ended => {
                begun.and(ended)?;
                let none = || Error::new(ErrorKind::Corrupt, "transaction", "it gave no answer");
                answer.ok_or_else(none)
            }
        }
    }

    async fn end(&self) -> Result<()> {
        self.open.store(false, Ordering::Relaxed);
        let step = Step::begin("commit").await;
        let instead = step::fault_of_commit();
        let text = instead.as_deref().unwrap_or("commit");
        let done = self.client.batch_execute(text).await;
        step.end();
        done.map_err(error::commit)
    }

    fn into_news(mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Takes everything back; a connection that is lost has done so already.
    pub(crate) async fn roll_back(self) {
        if self.open.swap(false, Ordering::Relaxed) {
            let _lost = self.client.batch_execute("rollback").await;
        }
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if self.open.load(Ordering::Relaxed) {
            // Asked once, it is on its way before anything that the next user of the connection sends.
            let _nobody_waits = self.client.batch_execute("rollback").now_or_never();
        }
    }
}
