//! Owns listings: filters, order and paging over the tables.

use uuid::Uuid;

use super::state::State;
use crate::error::Result;
use crate::event::Ordering;
use crate::id::JobId;
use crate::letter::LetterFilter;
use crate::query::{
    Cursor, DeadLetterView, EventFilter, EventView, Found, JobFilter, JobView, Page, Paging, Query,
    QueueView, TransitionView,
};
use crate::row::{EventRow, JobRow};

impl State {
    pub(super) fn find(&self, query: &Query) -> Result<Page<Found>> {
        match query {
            Query::Jobs(filter, paging) => {
                paging.check()?;
                let rows = self.jobs.values().filter(|row| self.job_fits(row, filter));
                let rows = rows.map(|row| (at(row.id.as_uuid(), 0), row));
                page(rows, paging, |row| Ok(Found::Job(Box::new(self.job_view(row)?))))
            }
            Query::Events(filter, paging) => {
                paging.check()?;
                let rows = self.events.values().filter(|row| event_fits(row, filter));
                let rows = rows.map(|row| (at(row.id.as_uuid(), 0), row));
                page(rows, paging, |row| Ok(Found::Event(Box::new(EventView::from(row.clone())))))
            }
            Query::DeadLetters(queue, paging) => {
                let filter = LetterFilter { queue: queue.clone(), ..LetterFilter::default() };
                self.find_letters(&filter, paging)
            }
            Query::Letters(filter, paging) => self.find_letters(filter, paging),
            Query::Transitions(job, paging) => {
                paging.check()?;
                let rows = self.transitions.range((*job, i64::MIN)..=(*job, i64::MAX));
                let rows = rows.map(|((job, number), row)| (at(job.as_uuid(), *number), row));
                page(rows, paging, |row| Ok(Found::Transition(TransitionView::from(row.clone()))))
            }
            Query::Parents(job, paging) => self.find_parents(*job, paging),
            Query::Children(job, paging) => self.find_children(*job, paging),
            Query::ParentCounts(job) => self.count_parents(*job),
            Query::Tombstone(job) => {
                let row = self.tombstones.get(job).cloned();
                let found = row.map(|row| Found::Tombstone(row.into()));
                Ok(Page::from_parts(found.into_iter().collect(), None))
            }
            Query::Queues => {
                let rows = self.queues.values().cloned().map(QueueView::from).map(Found::Queue);
                Ok(Page::from_parts(rows.collect(), None))
            }
        }
    }

    fn find_letters(&self, filter: &LetterFilter, paging: &Paging) -> Result<Page<Found>> {
        paging.check()?;
        let rows = self.dead_letters.iter().filter(|(_, (row, _))| filter.fits(row));
        let rows = rows.map(|((job, version), row)| (at(job.as_uuid(), *version), row));
        page(rows, paging, |(row, first)| {
            Ok(Found::DeadLetter(Box::new(DeadLetterView::from_row(row.clone(), *first))))
        })
    }

    fn job_fits(&self, row: &JobRow, filter: &JobFilter) -> bool {
        let request = self.requests.get(&row.id);
        filter.id.is_none_or(|id| id == row.id)
            && filter.queue.as_ref().is_none_or(|queue| *queue == row.queue)
            && filter.state.is_none_or(|state| state == row.state)
            && filter.partition.as_ref().is_none_or(|name| row.partition.as_ref() == Some(name))
            && filter.kind.as_ref().is_none_or(|kind| *kind == row.kind)
            && filter
                .key
                .as_ref()
                .is_none_or(|slot| self.keys.get(slot).is_some_and(|key| key.job == row.id))
            && filter.subject.as_ref().is_none_or(|name| {
                let subject = request.and_then(|request| request.subject.as_ref());
                subject.is_some_and(|subject| subject.name == *name)
            })
    }

    fn job_view(&self, row: &JobRow) -> Result<JobView> {
        let corrupt = |id: JobId| {
            crate::Error::new(crate::ErrorKind::Corrupt, "find", "a job has no request").about(id)
        };
        let request = self.requests.get(&row.id).cloned().ok_or_else(|| corrupt(row.id))?;
        let outcome = self.outcomes.get(&row.id).map(|it| it.row.clone()).unwrap_or_default();
        let mut view = JobView::from_rows(&self.lifecycles, row.clone(), request, outcome)?;
        view.replay_of = self.replays.get(&row.id).copied();
        Ok(view)
    }
}

fn event_fits(row: &EventRow, filter: &EventFilter) -> bool {
    filter.id.is_none_or(|id| id == row.id)
        && filter.topic.as_ref().is_none_or(|topic| *topic == row.topic)
        && filter.state.is_none_or(|state| state == row.state)
        && filter.ordering.as_ref().is_none_or(|ordering: &Ordering| *ordering == row.ordering)
}

fn at(id: Uuid, sequence: i64) -> Cursor {
    Cursor { id, sequence }
}

fn page<'a, Row: 'a>(
    rows: impl Iterator<Item = (Cursor, &'a Row)>,
    paging: &Paging,
    view: impl Fn(&Row) -> Result<Found>,
) -> Result<Page<Found>> {
    let rows = rows.filter(|(at, _)| paging.after.is_none_or(|after| *at > after));
    let mut rows: Vec<(Cursor, &Row)> = rows.take(paging.size + 1).collect();
    let more = rows.len() > paging.size;
    rows.truncate(paging.size);
    let next = rows.last().filter(|_| more).map(|(at, _)| *at);
    let items = rows.into_iter().map(|(_, row)| view(row)).collect::<Result<_>>()?;
    Ok(Page::from_parts(items, next))
}
