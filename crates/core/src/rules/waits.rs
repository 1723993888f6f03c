//! Owns waits: in which order the jobs of one call are decided, which waits a new job begins with, and
//! what the end of a job means for those that wait for it. An engine asks level by level: see
//! [`Work::take_ended`].

use std::collections::{BTreeMap, BTreeSet};

use super::Work;
use super::changes::{Changes, Draft};
use super::settle::patch;
use crate::after::Decision;
use crate::error::{Error, ErrorKind, Result};
use crate::failure::{Failure, FailureCode};
use crate::id::JobId;
use crate::job::NewJob;
use crate::lifecycle::{Place, State, Verb};
use crate::row::{JobRow, WaitRow};

/// What became of the jobs of one call so far: the job that each id stands for, `None` where it was
/// refused.
pub(super) type Call = BTreeMap<JobId, Option<JobId>>;

/// The waits of one transaction.
#[derive(Debug, Default)]
pub(super) struct Waits {
    rows: BTreeMap<(JobId, JobId), WaitRow>,
    new: BTreeSet<(JobId, JobId)>,
    changed: BTreeSet<(JobId, JobId)>,
    /// Jobs that have ended here and whose waits nobody has looked at yet.
    ended: BTreeSet<JobId>,
    /// Those that somebody has.
    looked_at: BTreeSet<JobId>,
    /// Jobs that wait for yet another, which is not in hand.
    blocked: BTreeSet<JobId>,
}

impl Waits {
    pub(super) fn add(&mut self, rows: &mut Vec<WaitRow>) {
        for row in rows.drain(..) {
            self.new.insert((row.job, row.parent));
            self.rows.insert((row.job, row.parent), row);
        }
    }

    pub(super) fn write(&mut self, changes: &mut Changes) {
        let new = std::mem::take(&mut self.new);
        let changed = std::mem::take(&mut self.changed);
        let row = |slot: &(JobId, JobId)| self.rows.get(slot).cloned();
        changes.waits_new.extend(new.iter().filter_map(row));
        changes.waits.extend(changed.difference(&new).filter_map(row));
    }

    /// The open waits for some jobs, by the job that waits.
    fn on(&self, parents: &[JobId]) -> BTreeMap<JobId, Vec<WaitRow>> {
        let mut found: BTreeMap<JobId, Vec<WaitRow>> = BTreeMap::new();
        for row in self.rows.values() {
            if row.open && parents.binary_search(&row.parent).is_ok() {
                found.entry(row.job).or_default().push(row.clone());
            }
        }
        found
    }
}

/// The order in which the jobs of one call are decided: each after those it waits for, else as given.
///
/// # Errors
/// `Invalid` naming the jobs that wait for each other.
pub(super) fn order(jobs: &[NewJob]) -> Result<Vec<usize>> {
    if jobs.iter().all(|job| job.after.is_empty()) {
        return Ok((0..jobs.len()).collect());
    }
    let mut first: BTreeMap<JobId, usize> = BTreeMap::new();
    for (at, job) in jobs.iter().enumerate() {
        first.entry(job.id).or_insert(at);
    }
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut missing: Vec<usize> = vec![0; jobs.len()];
    for ((at, job), missing) in jobs.iter().enumerate().zip(&mut missing) {
        for parent in job.after.iter().filter_map(|after| first.get(&after.parent)) {
            children.entry(*parent).or_default().push(at);
            *missing += 1;
        }
    }
    let free = missing.iter().enumerate().filter(|(_, missing)| **missing == 0);
    let mut free: BTreeSet<usize> = free.map(|(at, _)| at).collect();
    let mut order = Vec::with_capacity(jobs.len());
    while let Some(at) = free.pop_first() {
        order.push(at);
        for child in children.remove(&at).unwrap_or_default() {
            if let Some(left) = missing.get_mut(child) {
                *left -= 1;
                if *left == 0 {
                    free.insert(child);
                }
            }
        }
    }
    if order.len() == jobs.len() { Ok(order) } else { Err(circle(jobs, &first, &missing)) }
}

/// Names the jobs on a circle; every job that is left has a parent that is left.
fn circle(jobs: &[NewJob], first: &BTreeMap<JobId, usize>, missing: &[usize]) -> Error {
    let is_left = |at: &usize| missing.get(*at).is_some_and(|missing| *missing > 0);
    let mut path: Vec<usize> = Vec::new();
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut next = (0..jobs.len()).find(is_left);
    while let Some(at) = next {
        if let Some(begin) = seen.get(&at) {
            path.drain(..*begin);
            break;
        }
        seen.insert(at, path.len());
        path.push(at);
        let parents = jobs.get(at).into_iter().flat_map(|job| &job.after);
        next = parents.filter_map(|after| first.get(&after.parent).copied()).find(|at| is_left(at));
    }
    let mut names: Vec<String> =
        path.iter().filter_map(|at| jobs.get(*at)).map(|job| job.id.to_string()).collect();
    names.sort_unstable();
    let why = format!("jobs wait for each other in a circle: {}", names.join(", "));
    let about = names.into_iter().next().unwrap_or_default();
    Error::invalid("enqueue", why).about(format!("job {about}"))
}

impl Work {
    /// The jobs that new jobs wait for and that are not in hand yet, in order: to be locked and loaded
    /// once what is known of the call has been loaded.
    pub fn parents_wanted<'a>(
        &self,
        jobs: impl IntoIterator<Item = &'a NewJob> + Clone,
    ) -> Vec<JobId> {
        let named: BTreeSet<JobId> =
            jobs.clone().into_iter().flat_map(|job| &job.after).map(|after| after.parent).collect();
        let mut wanted = named.clone();
        let is_new = |job: &&NewJob| !self.known.jobs.contains_key(&job.id);
        jobs.clone().into_iter().filter(is_new).for_each(|job| {
            wanted.remove(&job.id);
        });
        // One that is named by its id in this call may be another by its key or its subject.
        for job in jobs.into_iter().filter(|job| named.contains(&job.id)) {
            let slot = job.key.clone().map(|key| (job.scope.clone(), key));
            wanted.extend(slot.and_then(|slot| self.known.keys.get(&slot)).map(|known| known.job));
            let subject = job.subject.as_ref().filter(|_| job.rerun);
            let subject = subject.and_then(|subject| self.known.subjects.get(&subject.name));
            wanted.extend(subject.into_iter().flat_map(|known| &known.runs).map(|run| run.job));
        }
        wanted.retain(|id| !self.jobs.contains_key(id) && !self.tombstones.contains_key(id));
        wanted.into_iter().collect()
    }

    /// Checks how the jobs of one call wait for each other; the order in which they are decided.
    pub(super) fn check_waits(&self, jobs: &[NewJob]) -> Result<Vec<usize>> {
        let waits: usize = jobs.iter().map(|job| job.after.len()).sum();
        if waits > self.limits.waits_max {
            let max = self.limits.waits_max;
            let why = format!("{waits} waits, at most {max} are allowed in one call");
            return Err(Error::invalid("enqueue", why));
        }
        order(jobs)
    }

    /// Begins a new job's waits: it is held while one is open, and cancelled where one has failed.
    pub(super) fn draft_waits(
        &self,
        draft: &mut Draft,
        job: &NewJob,
        row: JobRow,
        call: &Call,
    ) -> Result<JobRow> {
        let mut row = row;
        let mut failed = None;
        let mut waits: BTreeMap<JobId, WaitRow> = BTreeMap::new();
        for after in &job.after {
            let parent = match call.get(&after.parent) {
                Some(None) => {
                    let why = format!("job {}, which it waits for, was refused", after.parent);
                    let error = Error::new(ErrorKind::Conflict, "enqueue", why);
                    return Err(error.about(format!("job {}", job.id)));
                }
                Some(Some(parent)) => *parent,
                None => after.parent,
            };
            let (state, returns) = self.parent(draft, job.id, parent)?;
            let decision = after.on_failure.decide(state, returns);
            if decision == Decision::Cancel {
                failed = failed.or(Some((parent, state)));
            }
            row.held |= decision == Decision::Wait;
            waits.entry(parent).or_insert_with(|| WaitRow {
                job: job.id,
                parent,
                on_failure: after.on_failure,
                open: decision == Decision::Wait,
                outcome: state.is_terminal().then_some(state),
            });
        }
        draft.changes.waits_new.extend(waits.into_values());
        match failed {
            Some(parent) => self.cancel_child(draft, row, parent),
            None => Ok(row),
        }
    }

    /// The state of a job that another is to wait for, and whether a retry may take it back.
    fn parent(&self, draft: &Draft, child: JobId, parent: JobId) -> Result<(State, bool)> {
        if let Some(row) = draft.row(parent).or_else(|| self.jobs.get(&parent)) {
            return Ok((row.state, self.returns(row)?));
        }
        if let Some(tombstone) = self.tombstones.get(&parent) {
            return Ok((tombstone.outcome, false));
        }
        let known = draft.known.jobs.get(&parent).or_else(|| self.known.jobs.get(&parent));
        known.map(|known| (known.state, false)).ok_or_else(|| {
            let why = format!("job {parent}, which it waits for, does not exist");
            Error::new(ErrorKind::NotFound, "enqueue", why).about(format!("job {child}"))
        })
    }

    /// Whether an operator's retry may take an ended job back.
    pub(super) fn returns(&self, row: &JobRow) -> Result<bool> {
        let back = self.lifecycle(row)?.after(row.place(), Verb::Reopen);
        Ok(back == Some(Place::Waiting) && row.attempts < row.attempts_max)
    }

    fn cancel_child(
        &self,
        draft: &mut Draft,
        row: JobRow,
        (parent, state): (JobId, State),
    ) -> Result<JobRow> {
        let to = self.lifecycle(&row)?.take("cancel", row.place(), Verb::RequestCancel)?;
        let why = format!("job {parent}, which it waited for, ended as {state}");
        let failure = Failure::new(FailureCode::Cancelled, why);
        patch(draft, row.id, |patch| patch.failure = Some(failure.to_json()));
        self.move_job(draft, row, Verb::RequestCancel, to, None)
    }

    /// Notes that a job ends here, where it does.
    pub(super) fn note_end(&mut self, row: &JobRow) -> bool {
        let over = |row: &JobRow| row.state.is_terminal();
        let ends = over(row) && !self.jobs.get(&row.id).is_some_and(over);
        if ends {
            self.waits.ended.insert(row.id);
        }
        ends
    }

    /// Takes the jobs that have ended in this transaction since this was last asked, in order.
    ///
    /// Before it writes, an engine asks until there are none: it loads the open waits for them
    /// ([`Work::load_waits`]), locks and loads those of [`Work::waiting_for`] that are not in hand,
    /// tells which of those wait for yet others ([`Work::load_blocked`]), and calls [`Work::resolve`].
    pub fn take_ended(&mut self) -> Vec<JobId> {
        let ended = std::mem::take(&mut self.waits.ended);
        self.waits.looked_at.extend(&ended);
        ended.into_iter().collect()
    }

    /// Hands over open waits for jobs that have ended.
    pub fn load_waits(&mut self, rows: impl IntoIterator<Item = WaitRow>) {
        for row in rows {
            self.waits.rows.entry((row.job, row.parent)).or_insert(row);
        }
    }

    /// The jobs that wait for some that have ended, in order.
    pub fn waiting_for(&self, ended: &[JobId]) -> Vec<JobId> {
        self.waits.on(ended).into_keys().collect()
    }

    /// The jobs whose end this transaction has looked at; no open wait for them is kept elsewhere.
    pub fn looked_at(&self) -> Vec<JobId> {
        self.waits.looked_at.iter().copied().collect()
    }

    /// Tells which of some waiting jobs have stored open waits for other jobs than
    /// [`Work::looked_at`].
    pub fn load_blocked(&mut self, children: &[JobId], blocked: impl IntoIterator<Item = JobId>) {
        self.waits.blocked.retain(|id| children.binary_search(id).is_err());
        self.waits.blocked.extend(blocked);
    }

    /// Lets the end of some jobs tell on those that wait for them, whose rows are in hand.
    ///
    /// # Errors
    /// `Corrupt` for a lifecycle that is not registered; `IllegalTransition` where a child's lifecycle
    /// lists no cancel, which the enqueue refuses.
    pub fn resolve(&mut self, ended: &[JobId]) -> Result<()> {
        for (child, waits) in self.waits.on(ended) {
            let mut failed = None;
            for mut wait in waits {
                let Some(parent) = self.jobs.get(&wait.parent) else { continue };
                let state = parent.state;
                let decision = wait.on_failure.decide(state, self.returns(parent)?);
                if decision == Decision::Cancel {
                    failed = failed.or(Some((wait.parent, state)));
                }
                wait.open = decision == Decision::Wait;
                wait.outcome = state.is_terminal().then_some(state);
                self.waits.changed.insert((child, wait.parent));
                self.waits.rows.insert((child, wait.parent), wait);
            }
            if let Some(row) = self.jobs.get(&child).filter(|row| row.held).cloned() {
                self.resolve_child(row, failed)?;
            }
        }
        Ok(())
    }

    fn resolve_child(&mut self, row: JobRow, failed: Option<(JobId, State)>) -> Result<()> {
        let mut row = row;
        let mut draft = Draft::default();
        let id = row.id;
        let nil = JobId::from_uuid(uuid::Uuid::nil());
        let own = self.waits.rows.range((id, nil)..).take_while(|((child, _), _)| *child == id);
        let waits = self.waits.blocked.contains(&id) || own.into_iter().any(|(_, row)| row.open);
        if failed.is_some() || !waits {
            row.held = false;
            row.run_at = row.run_at.max(self.now);
            row.updated_at = row.updated_at.max(self.now);
        }
        // One that waits on is written as it is, so that of two parents that end at once, each under
        // a snapshot of its own, one has to begin anew.
        let row = match failed {
            Some(parent) => self.cancel_child(&mut draft, row, parent)?,
            None => row,
        };
        draft.put(row);
        self.merge(draft);
        Ok(())
    }
}
