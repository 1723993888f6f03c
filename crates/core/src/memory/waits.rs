//! Owns the jobs that wait for others: which rows the end of a job reaches, and how they are read.
//! What its end means is a rule of the contract.

use uuid::Uuid;

use super::state::{Facts, State};
use crate::error::{Error, ErrorKind, Result};
use crate::id::JobId;
use crate::job::NewJob;
use crate::lifecycle::State as JobState;
use crate::query::{Cursor, Found, Page, Paging};
use crate::row::WaitRow;
use crate::rules::Work;
use crate::wait_view::{ParentCounts, WaitView};

const NIL: JobId = JobId::from_uuid(Uuid::nil());

impl State {
    /// Loads what new jobs wait for, by what is known of them.
    pub(super) fn load_parents<'a>(
        &self,
        work: &mut Work,
        jobs: impl IntoIterator<Item = &'a NewJob> + Clone,
    ) {
        let parents = work.parents_wanted(jobs);
        self.load_jobs(work, parents);
    }

    /// Lets every end of this transaction tell on the jobs that wait for it.
    pub(super) fn resolve(&self, work: &mut Work) -> Result<()> {
        loop {
            let ended = work.take_ended();
            if ended.is_empty() {
                return Ok(());
            }
            for parent in &ended {
                let open = self.waits_open.range((*parent, NIL)..).map_while(|(of, child)| {
                    (of == parent).then(|| self.waits.get(&(*child, *parent)).cloned())
                });
                work.load_waits(open.flatten());
            }
            let children = work.waiting_for(&ended);
            let missing: Vec<JobId> =
                children.iter().copied().filter(|id| work.job(*id).is_none()).collect();
            self.load_jobs(work, missing);
            let gone = work.looked_at();
            let blocked = children.iter().copied().filter(|child| {
                let open = |row: &&WaitRow| row.open && gone.binary_search(&row.parent).is_err();
                self.waits_of(*child).any(|row| open(&row))
            });
            let blocked: Vec<JobId> = blocked.collect();
            work.load_blocked(&children, blocked);
            work.resolve(&ended)?;
        }
    }

    /// What a job waits for or has waited for, by parent.
    fn waits_of(&self, job: JobId) -> impl Iterator<Item = &WaitRow> {
        let rows = self.waits.range((job, NIL)..);
        rows.take_while(move |((child, _), _)| *child == job).map(|(_, row)| row)
    }

    /// Puts a wait in its place.
    pub(super) fn put_wait(&mut self, row: WaitRow) {
        let slot = (row.parent, row.job);
        if row.open {
            self.waits_open.insert(slot);
        } else {
            self.waits_open.remove(&slot);
        }
        self.waits.insert((row.job, row.parent), row);
    }

    /// Takes out the waits of a job that goes.
    pub(super) fn drop_waits(&mut self, job: JobId) {
        let parents: Vec<JobId> = self.waits_of(job).map(|row| row.parent).collect();
        for parent in parents {
            self.waits.remove(&(job, parent));
            self.waits_open.remove(&(parent, job));
        }
    }

    /// Whether any job still waits for this one.
    pub(super) fn is_waited_for(&self, parent: JobId) -> bool {
        self.waits_open.range((parent, NIL)..).next().is_some_and(|(of, _)| *of == parent)
    }

    pub(super) fn find_parents(&self, job: JobId, paging: &Paging) -> Result<Page<Found>> {
        let rows = self.waits_of(job).map(|row| (row.parent, row)).collect();
        self.wait_page(rows, paging)
    }

    pub(super) fn find_children(&self, parent: JobId, paging: &Paging) -> Result<Page<Found>> {
        let rows = self.waits.values().filter(|row| row.parent == parent);
        self.wait_page(rows.map(|row| (row.job, row)).collect(), paging)
    }

    fn wait_page(&self, rows: Vec<(JobId, &WaitRow)>, paging: &Paging) -> Result<Page<Found>> {
        paging.check()?;
        let at = |id: JobId| Cursor { id: id.as_uuid(), sequence: 0 };
        let rows = rows.into_iter().filter(|(id, _)| paging.after.is_none_or(|to| at(*id) > to));
        let mut rows: Vec<(JobId, &WaitRow)> = rows.take(paging.size + 1).collect();
        let more = rows.len() > paging.size;
        rows.truncate(paging.size);
        let next = rows.last().filter(|_| more).map(|(id, _)| at(*id));
        let items = rows.into_iter().map(|(_, row)| self.wait_view(row).map(Found::Wait));
        Ok(Page::from_parts(items.collect::<Result<_>>()?, next))
    }

    fn wait_view(&self, row: &WaitRow) -> Result<WaitView> {
        let state = |id: JobId| -> Option<JobState> { self.jobs.get(&id).map(|job| job.state) };
        let missing = || Error::new(ErrorKind::Corrupt, "find", "a wait has no job").about(row.job);
        WaitView::from_row(row, state(row.job).ok_or_else(missing)?, state(row.parent))
    }

    pub(super) fn count_parents(&self, job: JobId) -> Result<Page<Found>> {
        let mut counts = ParentCounts::default();
        for row in self.waits_of(job) {
            counts.add(self.wait_view(row)?.parent_state, row.open, 1);
        }
        Ok(Page::from_parts(vec![Found::ParentCounts(counts)], None))
    }

    /// Resolves, then writes everything.
    pub(super) fn conclude(&mut self, facts: &Facts<'_>, work: Work) -> Result<()> {
        let mut work = work;
        self.resolve(&mut work)?;
        self.write(facts, work);
        Ok(())
    }
}
