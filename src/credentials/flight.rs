//! Owns the turn-taking of refreshes: one call at a time for a job over all workers, and how many may
//! bring nothing. Knows no secrets and sends nothing.

use std::time::Duration;

use leasehold_core::{
    Document, Error, ErrorKind, Expected, JobId, Json, ListDocuments, Namespace, PutDocument,
    RecordId, Records, Result, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::TRIES;

/// The namespace of the turns.
const NAMESPACE: &str = "credentials.refreshes";
/// How long a job's turns are remembered after the last one.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is remembered of a job's refreshes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Turns {
    /// Calls that brought nothing, or nobody knows yet what.
    charged: u32,
    /// Until when a call is under way.
    until: Option<Timestamp>,
    /// Whose call that is.
    #[serde(default)]
    turn: u64,
}

/// Whether a caller may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// It may, and has been charged; what its turn is known by.
    Ours(u64),
    /// Another calls, for so long at most.
    UnderWay(Duration),
    /// The budget is spent.
    Spent,
}

fn id(job: JobId) -> Result<RecordId> {
    RecordId::new(NAMESPACE, job.to_string())
}

async fn read(records: &dyn Records, job: JobId) -> Result<(Option<Document>, Turns, Timestamp)> {
    let list = ListDocuments::new(Namespace::new(NAMESPACE)?).prefix(job.to_string()).limit(1);
    let page = records.list(list).await?;
    let found = page.items.into_iter().next();
    let turns = found.as_ref().map(|document| serde_json::from_str(document.body.as_str()));
    let turns = turns.transpose().map_err(|error| {
        let why = "the document tells no turns";
        Error::new(ErrorKind::Corrupt, "refresh credentials", why).with_source(error)
    })?;
    Ok((found, turns.unwrap_or_default(), page.now))
}

/// Writes over what was read; `false` when somebody else came first.
async fn write(
    records: &dyn Records,
    job: JobId,
    over: Option<Document>,
    turns: Turns,
) -> Result<bool> {
    let expected = over.map_or(Expected::Absent, |it| Expected::Version(it.version));
    let put = PutDocument::new(id(job)?, Json::of(&turns)?).ttl(KEPT).expected(expected);
    match records.put(put).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the turn of a job, and is charged for it before anything is sent.
pub(super) async fn enter(
    records: &dyn Records,
    job: JobId,
    (budget, flight): (u32, Duration),
) -> Result<Entry> {
    for _ in 0..TRIES {
        let (found, turns, now) = read(records, job).await?;
        if let Some(until) = turns.until.filter(|until| *until > now) {
            return Ok(Entry::UnderWay(until.since(now)));
        }
        if turns.charged >= budget {
            return Ok(Entry::Spent);
        }
        let (turn, until) = (rand::random(), Some(now.plus(flight)));
        let turns = Turns { charged: turns.charged + 1, until, turn };
        if write(records, job, found, turns).await? {
            return Ok(Entry::Ours(turn));
        }
    }
    Err(Error::new(ErrorKind::Busy, "refresh credentials", "the turn changes again and again"))
}

/// Gives a turn back, and the charge where the call was worth it.
pub(super) async fn leave(
    records: &dyn Records,
    job: JobId,
    turn: u64,
    advanced: bool,
) -> Result<()> {
    for _ in 0..TRIES {
        let (found, turns, _) = read(records, job).await?;
        let charged = turns.charged.saturating_sub(u32::from(advanced));
        // Where the turn has lapsed meanwhile it is another's, and stays.
        let until = turns.until.filter(|_| turns.turn != turn);
        if write(records, job, found, Turns { charged, until, ..turns }).await? {
            return Ok(());
        }
    }
    Ok(()) // it lapses by itself
}
