//! Owns replays by the batch: a row for each letter, none lost, none twice.

use std::collections::BTreeSet;

use leasehold_core::{
    Control, ErrorKind, JobId, LetterAct, LetterFilter, LetterState, Lifecycle, NewJob,
    ReplayBatch, ReplayOutcome, ReplayReport, Result, Verdict,
};

use super::group;
use super::replays::asked;
use crate::lab::{Lab, actor, assert_refused, job, job_of, lasting, queue};

group!("replays_many": dry_run_reports_and_writes_nothing, every_letter_is_met_once,
    refused_letter_is_a_row, batch_needs_a_note_and_the_word, page_goes_on_from_its_cursor);

fn batch(filter: LetterFilter) -> ReplayBatch {
    ReplayBatch::new(filter, actor()).note("mended").safe_to_repeat().size(3)
}

/// Dead letters of two lifecycles, and one in another queue.
async fn dead(lab: &Lab, count: usize) -> Result<BTreeSet<JobId>> {
    let mut ids = BTreeSet::new();
    for number in 0..count {
        let new: NewJob = match number % 2 {
            0 => job(1),
            _ => job_of(&Lifecycle::work_queue()),
        };
        let id = lab.add_to(new).await?;
        ids.insert(id);
    }
    lab.add_to(job(1).queue(queue("other"))).await?;
    Ok(ids)
}

impl Lab {
    /// Adds a job and fails it for good.
    async fn add_to(&self, new: NewJob) -> Result<JobId> {
        let (queue, work_queue) = (new.queue.clone(), new.lifecycle.as_str() == "work_queue");
        let id = self.add(new).await?;
        let worker = leasehold_core::WorkerId::new();
        let request = leasehold_core::ClaimRequest::new(worker, [queue]);
        let fence = self.claim(request).await?.remove(0).fence;
        let failure = lasting();
        let verdict = match work_queue {
            true => Verdict::Fail { failure },
            false => Verdict::DeadLetter { failure },
        };
        self.end(fence, verdict).await?;
        Ok(id)
    }
}

fn jobs(report: &ReplayReport) -> Vec<JobId> {
    report.rows.iter().map(|row| row.job).collect()
}

/// A dry run names each letter that the run would mean, in its order, and changes nothing.
///
/// Proves: DL-3
async fn dry_run_reports_and_writes_nothing(lab: &Lab) -> Result<()> {
    let ids = dead(lab, 8).await?;
    let filter = || LetterFilter::new().queue(queue("default"));
    let before = lab.dump().await?;
    let planned = batch(filter()).dry_run().all(lab.store()).await?;
    assert_eq!(jobs(&planned), ids.iter().copied().collect::<Vec<_>>());
    assert!(planned.rows.iter().all(|row| matches!(row.outcome, ReplayOutcome::Planned)));
    lab.assert_unchanged(&before).await?;
    let done = batch(filter()).all(lab.store()).await?;
    assert_eq!(jobs(&done), jobs(&planned));
    Ok(())
}

/// A run over many pages replays each letter once, in place or anew, and a second run finds none.
///
/// Proves: DL-3, DL-5, GLO-2
async fn every_letter_is_met_once(lab: &Lab) -> Result<()> {
    let ids = dead(lab, 10).await?;
    let filter = LetterFilter::new().queue(queue("default"));
    let done = batch(filter.clone()).all(lab.store()).await?;
    assert!(done.stopped.is_none() && done.next.is_none());
    let met: BTreeSet<JobId> = jobs(&done).into_iter().collect();
    assert_eq!((met, done.rows.len()), (ids, 10));
    for row in &done.rows {
        let ReplayOutcome::Replayed(runs) = row.outcome else { panic!("{row:?}") };
        let letter = lab.letter(row.job).await?;
        assert_eq!((letter.state, letter.replay_job), (LetterState::Replaying, Some(runs)));
    }
    assert_eq!(lab.take(99).await?.len(), 10);
    assert_eq!(batch(filter).all(lab.store()).await?.rows.len(), 0);
    let other = batch(LetterFilter::new()).all(lab.store()).await?;
    assert_eq!(other.rows.len(), 1);
    Ok(())
}

/// A letter whose job cannot be replayed is a row of its own, and those after it are replayed.
///
/// Proves: DL-3
async fn refused_letter_is_a_row(lab: &Lab) -> Result<()> {
    let first = lab.dead(job(1)).await?;
    lab.replay(asked(first)).await?;
    lab.cancel(first).await?;
    let second = lab.dead(job(2)).await?;
    let third = lab.dead(job(3)).await?;
    let (act, note) = (LetterAct::Resolve, "by hand".to_owned());
    lab.control(Control::NoteLetter { act, job: third, actor: actor(), note }).await?;
    let done = batch(LetterFilter::new()).all(lab.store()).await?;
    assert_eq!(jobs(&done), [first, second]);
    let ReplayOutcome::Refused(error) = &done.rows[0].outcome else { panic!("{done:?}") };
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
    assert!(matches!(done.rows[1].outcome, ReplayOutcome::Replayed(job) if job == second));
    Ok(())
}

/// A batch without a note or without the word is refused before it looks at anything, dry or not.
///
/// Proves: DL-3
async fn batch_needs_a_note_and_the_word(lab: &Lab) -> Result<()> {
    dead(lab, 2).await?;
    let bare = || ReplayBatch::new(LetterFilter::new(), actor());
    for refused in [bare().note("mended"), bare().safe_to_repeat(), bare().dry_run()] {
        assert_refused(refused.all(lab.store()).await, ErrorKind::Invalid);
    }
    Ok(())
}

/// Page by page a batch goes on where the page before has ended.
///
/// Proves: DL-3, QUE-6
async fn page_goes_on_from_its_cursor(lab: &Lab) -> Result<()> {
    let ids = dead(lab, 7).await?;
    let batch = batch(LetterFilter::new().queue(queue("default")));
    let (mut after, mut met, mut pages) = (None, Vec::new(), 0);
    loop {
        let page = batch.page(lab.store(), after).await?;
        met.extend(jobs(&page));
        pages += 1;
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!((met, pages), (ids.into_iter().collect(), 3));
    Ok(())
}
