//! Owns the judgement over a load: what callers were told against what the store holds afterwards.

use std::collections::BTreeSet;

use leasehold_core::{
    EventFilter, EventId, Found, JobFilter, JobId, Paging, Query, Result, State, Store, StoreExt,
    Topic,
};

use super::load::{Tally, Told};
use crate::evidence::Evidence;
use crate::history::{Seen, faults, late};

/// What a load came to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What is wrong, in words; nothing when all is well.
    pub wrong: Vec<String>,
    /// Jobs whose enqueue was acknowledged.
    pub acknowledged: usize,
    /// Those of them that the store does not have.
    pub lost: usize,
    /// Writes accepted from a claim after a newer one.
    pub stale: usize,
    /// Claims and settlements in the history that was checked.
    pub history: usize,
}

/// Judges a load that has been drained.
///
/// # Errors
/// What the store says to the look.
pub async fn judge(told: &Told, store: &dyn Store) -> Result<Verdict> {
    let (stored, ended) = jobs(told, store).await?;
    let events = events(store).await?;
    let kept = told.kept().clone();
    let mut verdict = Verdict {
        acknowledged: kept.acknowledged.len(),
        lost: kept.acknowledged.difference(&stored).count(),
        history: kept.seen.len(),
        ..Verdict::default()
    };
    let plain: Vec<Seen> = kept.seen.iter().map(|timed| timed.seen).collect();
    let stale = late(&kept.seen);
    verdict.stale = stale.len();
    verdict.wrong = faults(&plain, &ended.iter().copied().collect::<Vec<_>>());
    verdict.wrong.extend(stale);
    let mut say = |what: &str, number: usize| {
        if number > 0 {
            verdict.wrong.push(format!("{number} {what}"));
        }
    };
    say("jobs were acknowledged and are lost", verdict.lost);
    say("jobs are there that nobody was told of", stored.difference(&kept.acknowledged).count());
    say("jobs have not ended", stored.difference(&ended).count());
    say("events of accepted calls are lost", kept.events.difference(&events).count());
    let known: BTreeSet<EventId> = kept.events.union(&kept.perhaps).copied().collect();
    say("events of refused calls are there", events.difference(&known).count());
    Ok(verdict)
}

impl Verdict {
    /// Adds the figures of a load and of this judgement to a line of evidence.
    pub fn add_to(&self, evidence: Evidence, tally: &Tally) -> Evidence {
        let [had, had_not, either] = [&tally.had, &tally.had_not, &tally.either].map(Tally::read);
        evidence
            .count("calls", Tally::read(&tally.sent))
            .count("calls that succeeded", Tally::read(&tally.succeeded))
            .count("calls that were fenced", Tally::read(&tally.fenced))
            .count("calls with an unknown outcome", Tally::read(&tally.unknown))
            .count("calls that reached nothing", Tally::read(&tally.unreached))
            .count("different calls among these", had + had_not + either)
            .count("unknown outcomes that had committed", had)
            .count("unknown outcomes that had not", had_not)
            .count("unknown outcomes with one answer either way", either)
            .count("claims paused past their lease", Tally::read(&tally.pauses))
            .count("jobs acknowledged", self.acknowledged)
            .count("acknowledged and lost", self.lost)
            .count("accepted stale writes", self.stale)
            .count("entries of the history", self.history)
    }
}

/// The jobs of the load's queue, and those that have succeeded.
async fn jobs(told: &Told, store: &dyn Store) -> Result<(BTreeSet<JobId>, BTreeSet<JobId>)> {
    let (mut stored, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut paging = Paging::first(1_000);
    loop {
        let page = store.jobs(JobFilter::new().queue(told.queue().clone()), paging).await?;
        for job in &page.items {
            stored.insert(job.id);
            if job.state == State::Succeeded {
                ended.insert(job.id);
            }
        }
        let Some(next) = page.next else { return Ok((stored, ended)) };
        paging = Paging::first(1_000).after(next);
    }
}

/// The events that loads publish.
async fn events(store: &dyn Store) -> Result<BTreeSet<EventId>> {
    let mut found = BTreeSet::new();
    for topic in ["counted", "reported"] {
        let mut paging = Paging::first(1_000);
        loop {
            let filter = EventFilter::new().topic(Topic::new(topic)?);
            let page = store.find(Query::Events(filter, paging)).await?;
            found.extend(page.items.iter().filter_map(|item| match item {
                Found::Event(event) => Some(event.id),
                _ => None,
            }));
            let Some(next) = page.next else { break };
            paging = Paging::first(1_000).after(next);
        }
    }
    Ok(found)
}
