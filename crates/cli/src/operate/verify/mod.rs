//! Owns the walk over a whole database that looks for broken rules: pages of jobs, events and dead
//! letters, each judged by itself and beside its own rows. It reads only, holds one page at a time, and
//! works beside others' writes: what looks broken is read again before it is told.

mod event;
mod job;
mod letter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use leasehold::{
    Cursor, ErrorKind, EventFilter, Found, JobFilter, LetterFilter, Paging, Query, Result, Store,
};
use serde_json::{Value, json};

use super::answer::Answer;

/// Rows of one page.
const PAGE: usize = 500;
/// How often a row has to look broken before it is called so.
const LOOKS: usize = 3;
/// After how many rows it is told how far the walk is.
const TELL: u64 = 10_000;

const COLUMNS: &[&str] = &["what", "id", "broken"];

/// How much is looked at.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Scope {
    /// Judge each row by itself only, without the rows that belong to it
    #[arg(long)]
    quick: bool,
    /// The most breaches to list; the others are counted
    #[arg(long, default_value_t = 1_000)]
    most: usize,
}

/// What was found so far.
#[derive(Debug)]
struct Findings {
    scope: Scope,
    /// What is walked over.
    walks: &'static str,
    looked_at: u64,
    broken: u64,
    listed: Vec<Vec<Value>>,
}

impl Findings {
    fn tell(&mut self, what: &str, id: String, wrong: &[String]) {
        self.looked_at += 1;
        if self.looked_at.is_multiple_of(TELL) {
            crate::failure::tell(format!(
                "{} rows looked at, {} broken",
                self.looked_at, self.broken
            ));
        }
        for why in wrong {
            self.broken += 1;
            if self.listed.len() < self.scope.most {
                self.listed.push(vec![json!(what), json!(id), json!(why)]);
            }
        }
    }
}

/// Looks at everything; gives the answer and how many breaches there are.
pub(super) async fn check(store: &Arc<dyn Store>, scope: Scope) -> Result<(Answer, u64)> {
    let mut findings =
        Findings { scope, walks: "job", looked_at: 0, broken: 0, listed: Vec::new() };
    // The store's own row, its clock, the queues and the lifecycles.
    if let Some(why) = unreadable(store.stats().await)? {
        findings.tell("store", String::new(), &[why]);
    }
    for found in store.find(Query::Queues).await?.items {
        if let Found::Unreadable(row) = found {
            findings.tell("queue", row.id, &[row.why]);
        }
    }
    let jobs = walk(store, |page| Query::Jobs(JobFilter::new(), page), &mut findings).await?;
    findings.walks = "event";
    let events = walk(store, |page| Query::Events(EventFilter::new(), page), &mut findings).await?;
    findings.walks = "dead letter";
    let letters =
        walk(store, |page| Query::Letters(LetterFilter::new(), page), &mut findings).await?;
    let facts = Answer::facts([
        ("jobs", json!(jobs)),
        ("events", json!(events)),
        ("dead_letters", json!(letters)),
        ("breaches", json!(findings.broken)),
    ]);
    let rows = Answer::Rows { columns: COLUMNS, rows: findings.listed, next: None };
    Ok((Answer::Parts(vec![("looked_at", facts), ("breaches", rows)]), findings.broken))
}

async fn walk(
    store: &Arc<dyn Store>,
    query: impl Fn(Paging) -> Query,
    findings: &mut Findings,
) -> Result<u64> {
    let (mut rows, mut after): (u64, Option<Cursor>) = (0, None);
    loop {
        let mut page = store.find(query(Paging { size: PAGE, after })).await?;
        for found in &page.items {
            rows += 1;
            judge(store, found, findings).await?;
        }
        after = page.next.take();
        if after.is_none() {
            return Ok(rows);
        }
    }
}

async fn judge(store: &Arc<dyn Store>, found: &Found, findings: &mut Findings) -> Result<()> {
    let quick = findings.scope.quick;
    let (what, id) = match found {
        Found::Job(job) => ("job", job.id.to_string()),
        Found::Event(event) => ("event", event.id.to_string()),
        Found::DeadLetter(letter) => {
            ("dead letter", format!("{} {}", letter.job, letter.claim_version.get()))
        }
        Found::Unreadable(row) => {
            findings.tell(findings.walks, row.id.clone(), &[cannot_be_read(&row.why)]);
            return Ok(());
        }
        _ => return Ok(()),
    };
    // Rows change between two reads. What is broken stays so; what only changed meanwhile does not.
    let mut wrong: Option<Vec<String>> = None;
    for _ in 0..LOOKS {
        let looked = match found {
            Found::Job(job) => job::wrong(store, job.id, quick).await,
            Found::Event(event) => event::wrong(store, event.id, quick).await,
            Found::DeadLetter(letter) => letter::wrong(store, letter, quick).await,
            _ => Ok(Vec::new()),
        };
        // A row beside it may be what cannot be read; that too is told, and the walk goes on.
        let seen = match looked {
            Ok(seen) => seen,
            Err(error) => unreadable::<()>(Err(error))?.into_iter().collect(),
        };
        let both = |before: Vec<String>| -> Vec<String> {
            before.into_iter().filter(|why| seen.contains(why)).collect()
        };
        let left = wrong.take().map_or_else(|| seen.clone(), both);
        let is_fine = left.is_empty();
        wrong = Some(left);
        if is_fine {
            break;
        }
    }
    findings.tell(what, id, &wrong.unwrap_or_default());
    Ok(())
}

/// What damage it was that an answer met; other errors end the walk.
fn unreadable<T>(answer: Result<T>) -> Result<Option<String>> {
    match answer {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            Ok(Some(cannot_be_read(error.message())))
        }
        Err(error) => Err(error),
    }
}

fn cannot_be_read(why: &str) -> String {
    format!("cannot be read: {why}")
}

/// Keeps what is not so.
fn unless(rules: impl IntoIterator<Item = (bool, &'static str)>) -> Vec<String> {
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, why)| why.to_owned()).collect()
}
