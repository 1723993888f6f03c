//! Owns the low-water marks: where the claimable rows of a queue and priority begin, so that claims
//! need not walk past dead rows that an old snapshot still sees. Rows made claimable get their mark in
//! the same transaction; marks rise now and then, in transactions of their own, when nobody is adding
//! any. Decides nothing about jobs: without a mark's rise a claim takes the same rows, only slower.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::try_join;
use leasehold_core::row::JobRow;
use leasehold_core::rules::Changes;
use leasehold_core::{Claim, QueueName, Result, State, Timestamp};

use crate::bind::Params;
use crate::schema::Schema;
use crate::statement::{Db, Sql, sql};
use crate::store::PostgresStore;

/// After how many claimed jobs of a queue its marks rise.
const RAISE_EVERY: u64 = 500;
/// The most jobs between two tries while other transactions stand in the way.
const RAISE_LATEST: u64 = 64_000;
/// How often an empty claim looks for rows that something else than this library wrote.
const FIND_EVERY: u64 = 64;

/// What this process has taken from its queues since their marks rose.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<BTreeMap<QueueName, Since>>);

#[derive(Debug)]
struct Since {
    taken: u64,
    raise_at: u64,
    empty: u64,
}

impl Default for Since {
    fn default() -> Self {
        Self { taken: 0, raise_at: RAISE_EVERY, empty: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Raise,
    Find,
}

impl Marks {
    /// Counts a claim; what is due by now in which queues.
    fn note(&self, queues: &[QueueName], claims: &[Claim]) -> Vec<(QueueName, Due)> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        for claim in claims {
            let of = since.entry(claim.job.queue.clone()).or_default();
            of.taken += 1;
            if of.taken == of.raise_at {
                due.push((claim.job.queue.clone(), Due::Raise));
            }
        }
        for queue in queues.iter().filter(|_| claims.is_empty()) {
            let of = since.entry(queue.clone()).or_default();
            if of.empty.is_multiple_of(FIND_EVERY) {
                due.push((queue.clone(), Due::Find));
            }
            of.empty += 1;
        }
        due
    }

    /// Notes the end of a try to raise; after one in vain the next comes later.
    fn tried(&self, queue: &QueueName, raised: bool) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = since.entry(queue.clone()).or_default();
        of.taken = 0;
        of.raise_at = if raised { RAISE_EVERY } else { (of.raise_at * 2).min(RAISE_LATEST) };
    }
}

/// Names the lock of a schema's marks.
pub(crate) fn lock_name(schema: &Schema) -> String {
    format!("leasehold low_water {}", schema.name())
}

/// Takes the shared lock under which marks are added.
pub(crate) async fn lock(db: &Db<'_>) -> Result<()> {
    let name = lock_name(db.schema);
    db.execute(sql!("lock_marks"), Params::new().one(name)).await.map(|_| ())
}

/// Names the lock in a statement.
fn lock_of(schema: &Schema) -> String {
    // The name is letters, digits and `_`.
    format!("hashtextextended('{}', 0)", lock_name(schema))
}

/// Adds the marks of rows that become claimable. Sent along with the rows: the lock comes first, so
/// that the statement after it sees every rise.
pub(crate) async fn add(db: &Db<'_>, changes: &Changes, locked: bool) -> Result<()> {
    let Some((sql, values)) = statement(changes) else { return Ok(()) };
    let added = db.execute(sql, values);
    if locked {
        return added.await.map(|_| ());
    }
    try_join(lock(db), added).await.map(|_| ())
}

/// What adds the marks of rows that become claimable.
pub(crate) fn statement(changes: &Changes) -> Option<(Sql, Params)> {
    let new = changes.jobs_new.iter().map(|(row, _)| row);
    let mut first: BTreeMap<(&QueueName, i16), Timestamp> = BTreeMap::new();
    let claimable =
        |row: &&JobRow| row.state == State::Waiting && !row.held && row.partition.is_none();
    for row in new.chain(&changes.jobs).filter(claimable) {
        let at = first.entry((&row.queue, row.priority)).or_insert(row.run_at);
        *at = row.run_at.min(*at);
    }
    if first.is_empty() {
        return None;
    }
    let values = Params::new()
        .many(first.keys().map(|(queue, _)| queue.as_str()))
        .many(first.keys().map(|(_, priority)| *priority))
        .many(first.values().copied());
    Some((sql!("add_marks"), values))
}

impl PostgresStore {
    /// Keeps the marks after a claim, in passing.
    pub(crate) fn keep_marks(&self, queues: &[QueueName], claims: &[Claim]) {
        let due = self.marks().note(queues, claims);
        if due.is_empty() {
            return;
        }
        let store = self.clone();
        tokio::spawn(async move {
            for (queue, due) in due {
                let done = match due {
                    Due::Raise => store.raise_marks(&queue).await,
                    Due::Find => store.find_marks(&queue).await,
                };
                if due == Due::Raise {
                    store.marks().tried(&queue, done.is_ok());
                }
                if let Err(error) = done {
                    tracing::debug!(%queue, %error, "low-water marks stay as they are");
                }
            }
        });
    }

    /// Raises the marks of a queue; an error when writers hold the lock for longer than they may be
    /// kept waiting.
    pub(crate) async fn raise_marks(&self, queue: &QueueName) -> Result<()> {
        let client = self.reader().await?;
        let db = Db::plain(&client, self.schema());
        // A rise that a crash undoes is none that matters.
        let begin = format!(
            "begin isolation level read committed; set local lock_timeout = '20ms'; set local jit = off; \
             set local synchronous_commit = off; select pg_advisory_xact_lock({})",
            lock_of(self.schema())
        );
        let raise = async {
            db.batch("begin", &begin).await?;
            let values = Params::new().one(queue.as_str()).one(self.shared().manual_now());
            db.execute(sql!("raise_marks"), values).await
        };
        let raised = raise.await;
        let end = if raised.is_ok() { "commit" } else { "rollback" };
        db.batch("end", end).await?;
        raised.map(|_| ())
    }

    /// Adds the marks of rows that were written past this library. Marks may always be added.
    async fn find_marks(&self, queue: &QueueName) -> Result<()> {
        let client = self.reader().await?;
        let db = Db::plain(&client, self.schema());
        db.execute(sql!("find_marks"), Params::new().one(queue.as_str())).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: WQ-3
    #[test]
    fn a_rise_in_vain_is_tried_later_each_time() {
        let marks = Marks::default();
        let queue = QueueName::default_queue();
        let raise_at = || marks.0.lock().expect("free").get(&queue).expect("counted").raise_at;
        marks.tried(&queue, false);
        assert_eq!(raise_at(), RAISE_EVERY * 2);
        (0..20).for_each(|_| marks.tried(&queue, false));
        assert_eq!(raise_at(), RAISE_LATEST);
        marks.tried(&queue, true);
        assert_eq!(raise_at(), RAISE_EVERY);
    }

    /// Proves: WQ-3
    #[test]
    fn empty_claims_look_for_strangers_rows_now_and_then() {
        let marks = Marks::default();
        let queues = [QueueName::default_queue()];
        let due = (0..=FIND_EVERY).map(|_| marks.note(&queues, &[]).len());
        assert_eq!(due.sum::<usize>(), 2);
    }
}
