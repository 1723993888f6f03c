//! Owns what an operator does to a whole store after it was brought back or its machine's clock was wrong:
//! raising the epoch, and setting the clock.

use std::sync::Arc;

use leasehold::{Actor, Control, Controlled, Error, ErrorKind, Result, Store};
use serde_json::json;

use super::answer::Answer;

/// Makes every fence and token from before worthless, and tells the epoch.
pub(super) async fn raise_epoch(store: &Arc<dyn Store>, actor: Actor) -> Result<Answer> {
    match store.control(Control::BumpEpoch { actor }).await? {
        Controlled::Epoch(epoch) => Ok(Answer::facts([("epoch", json!(epoch.get()))])),
        _ => Err(Error::new(ErrorKind::Corrupt, "raise-epoch", "the epoch could not be raised")),
    }
}

/// Sets SQLite's clock to the machine's, back too.
pub(super) async fn reset_clock(store: &Arc<dyn Store>, actor: Actor) -> Result<Answer> {
    let done = store.control(Control::ResetClock { actor }).await?;
    let stats = store.look(leasehold::StatsScope::Live).await?;
    if done == Controlled::Unchanged && !stats.engine.starts_with("PostgreSQL") {
        let leased: u64 = stats.queues.iter().map(|queue| queue.leased).sum();
        let why = format!(
            "{leased} jobs and {} events are leased: end the workers and wait for them, or cancel the jobs",
            stats.outbox.leased
        );
        return Err(Error::new(ErrorKind::Conflict, "reset-clock", why));
    }
    Ok(Answer::facts([("now", json!(stats.now.to_string()))]))
}
