//! Owns progress under the lease: step numbers, checkpoints, stages.

use super::Work;
use super::changes::Draft;
use super::ownership::Ownership;
use super::settle::{SettleWants, patch};
use crate::error::{Error, LostReason, Result};
use crate::lifecycle::{BudgetScope, Place, Verb};
use crate::row::JobRow;
use crate::settle::Progress;

impl SettleWants {
    /// What some reports of progress need.
    pub fn of_progress(reports: &[Progress]) -> Self {
        let mut it = Self::default();
        for report in reports {
            it.add(report.fence.job(), &report.events);
        }
        it.sorted()
    }
}

impl Work {
    /// Stores one report; `Err` is that item's answer and leaves nothing.
    ///
    /// # Errors
    /// `FenceLost`, `IllegalTransition`, `Invalid`, `Conflict`, `NotFound` (an ordering job).
    pub fn progress(&mut self, report: &Progress) -> Result<()> {
        let subject = || format!("job {}", report.fence.job());
        let row = match self.ownership("progress", &report.fence)? {
            Ownership::Owned(row) => row,
            Ownership::Ended(..) => {
                return Err(Error::lost("progress", subject(), LostReason::Settled));
            }
        };
        if report.step == 0 || report.step > row.step + 1 {
            let why = format!("step {} follows step {}, steps rise by one", report.step, row.step);
            return Err(Error::invalid("progress", why).about(subject()));
        }
        if report.step <= row.step {
            return Ok(());
        }
        let draft = self.draft_progress(row, report).map_err(|e| {
            if e.kind() == crate::ErrorKind::IllegalTransition { e.about(subject()) } else { e }
        })?;
        self.merge(draft);
        Ok(())
    }

    fn draft_progress(&self, mut row: JobRow, report: &Progress) -> Result<Draft> {
        let mut draft = Draft::default();
        let id = row.id;
        self.check_json("progress", id, report.checkpoint.as_ref())?;
        row.step = report.step;
        row.updated_at = row.updated_at.max(self.now);
        if let Some(stage) = &report.advance {
            let lifecycle = self.lifecycle(&row)?.clone();
            let to = lifecycle.after(row.place(), Verb::Advance);
            let wanted = lifecycle.stage_ordinal(stage).map(Place::Leased);
            let Some(to) = to.filter(|to| wanted == Some(*to)) else {
                let from = lifecycle.public_name(row.place(), row.again);
                let why =
                    format!("lifecycle {} lists no advance from {from} to {stage}", row.lifecycle);
                let kind = crate::ErrorKind::IllegalTransition;
                return Err(Error::new(kind, "progress", why));
            };
            row = self.move_job(&mut draft, row, Verb::Advance, to, None)?;
            if lifecycle.budget().scope == BudgetScope::Stage {
                row.attempts = 1;
            }
        }
        draft.put(row);
        self.draft_events("progress", &mut draft, Some(id), &report.events)?;
        if let Some(checkpoint) = &report.checkpoint {
            patch(&mut draft, id, |patch| patch.checkpoint = Some(checkpoint.clone()));
        }
        Ok(draft)
    }
}
