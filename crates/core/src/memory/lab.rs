//! Owns what tests need of the in-memory store: a clock set by hand, and scripts played inside a
//! caller's transaction, here a copy of the tables that is put back at its commit.

use async_trait::async_trait;

use super::MemoryStore;
use super::clock::Clock;
use super::state::{Facts, State};
use crate::error::{Error, Result};
use crate::job::Limits;
use crate::lab::{Dump, Ending, LabStore, ManualClock, RecordReply, RecordStep, Reply, Step};
use crate::rules::Ids;
use crate::time::Timestamp;

mod dump;
#[cfg(test)]
mod tests;

impl MemoryStore {
    /// An empty store for tests: its clock stands at `start`, its ids are numbered, and the times of
    /// callers' ids are not checked.
    pub fn lab(start: Timestamp) -> Self {
        let limits = Limits { id_skew_max: None, ..Limits::default() };
        Self::assemble(Clock::Manual(ManualClock::at(start)), limits, Ids::numbered())
    }

    fn step(&self, state: &mut State, saved: &mut Vec<State>, step: Step) -> Result<Reply> {
        let facts = self.facts();
        let none = || Error::invalid("play", "there is no savepoint");
        Ok(match step {
            Step::OwnRow(text) => {
                state.own_rows.push(text);
                Reply::Done
            }
            Step::Enqueue(jobs) => Reply::Enqueue(state.enqueue(&facts, &jobs)),
            Step::Publish(events) => Reply::Publish(state.publish(&facts, &events)),
            Step::Progress(reports) => Reply::Progress(state.progress(&facts, &reports)),
            Step::Settle(settlements) => Reply::Settle(state.settle(&facts, &settlements)),
            Step::Once(request) => Reply::Once(state.once(&facts, &request)),
            Step::Admit(wanted) => Reply::Admit(state.admit(&facts, &wanted)),
            Step::Record(step) => Reply::Record(record(state, &facts, step)),
            Step::Savepoint => {
                saved.push(state.clone());
                Reply::Done
            }
            Step::RollbackToSavepoint => {
                *state = saved.pop().ok_or_else(none)?;
                Reply::Done
            }
            Step::ReleaseSavepoint => {
                saved.pop().ok_or_else(none)?;
                Reply::Done
            }
        })
    }
}

fn record(state: &mut State, facts: &Facts<'_>, step: RecordStep) -> RecordReply {
    match step {
        RecordStep::Put(put) => RecordReply::Put(state.put(facts, &put)),
        RecordStep::Get(id) => RecordReply::Get(Ok(state.get(facts, &id))),
        RecordStep::Delete(delete) => RecordReply::Delete(state.delete(facts, &delete)),
        RecordStep::List(list) => RecordReply::List(state.list(facts, &list)),
        RecordStep::PutBlob(blob) => RecordReply::PutBlob(state.put_blob(facts, &blob)),
        RecordStep::GetBlob(id) => RecordReply::GetBlob(Ok(state.get_blob(facts, &id))),
        RecordStep::DeleteBlob(id) => RecordReply::DeleteBlob(Ok(state.delete_blob(facts, &id))),
        RecordStep::Append(entry) => RecordReply::Append(state.append(facts, &entry)),
        RecordStep::Audit(filter, paging) => RecordReply::Audit(state.audit(&filter, &paging)),
        RecordStep::Take(wish) => RecordReply::Take(state.take(facts, &wish)),
    }
}

#[async_trait]
impl LabStore for MemoryStore {
    fn clock(&self) -> Option<ManualClock> {
        match &self.inner.clock {
            Clock::Manual(clock) => Some(clock.clone()),
            Clock::Machine { .. } => None,
        }
    }

    async fn dump(&self) -> Result<Dump> {
        self.lock().dump()
    }

    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        let mut tables = self.lock();
        let mut state = tables.clone();
        let mut saved = Vec::new();
        let mut replies = Vec::with_capacity(script.len());
        for step in script {
            replies.push(self.step(&mut state, &mut saved, step)?);
        }
        state.news.clear();
        if ending == Ending::Commit {
            *tables = state;
        }
        Ok(replies)
    }
}
