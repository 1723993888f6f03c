//! Owns replays by the batch: which dead letters of jobs a filter means, one request for each, and a row
//! of the report for each, whatever became of it. What a replay is, the store's rules decide.

use crate::control::{Control, Controlled};
use crate::error::{Error, ErrorKind, Result};
use crate::fence::ClaimVersion;
use crate::id::JobId;
use crate::letter::{LetterFilter, Replay, ReplayFrom};
use crate::name::Actor;
use crate::query::{Cursor, DeadLetterView, Found, Paging, Query};
use crate::store::Store;

/// How often one request is sent in all while the store gives no final answer.
const SENDS_MAX: u32 = 3;

/// Replays every dead letter that waits for an operator and fits a filter.
///
/// ```no_run
/// # async fn f(store: &dyn leasehold_core::Store) -> leasehold_core::Result<()> {
/// use leasehold_core::{Actor, LetterFilter, ReplayBatch};
///
/// let filter = LetterFilter::new().error_class("SCHEMA_INVALID");
/// let batch = ReplayBatch::new(filter, Actor::new("ada")?).note("schema 7 is out").safe_to_repeat();
/// for row in batch.clone().dry_run().all(store).await?.rows {
///     println!("{} {:?}", row.job, row.outcome);
/// }
/// let done = batch.all(store).await?;
/// # let _ = done;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReplayBatch {
    filter: LetterFilter,
    actor: Actor,
    note: String,
    safe_to_repeat: bool,
    from: ReplayFrom,
    size: usize,
    dry_run: bool,
}

/// What became of one dead letter.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayOutcome {
    /// A dry run: it would be asked for.
    Planned,
    /// This job runs in its place, or is the same one in place.
    Replayed(JobId),
    /// Somebody else's request came first; this job runs.
    Repeated(JobId),
    /// The store refused it; the others go on.
    Refused(Error),
}

/// One row of the report.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplayedRow {
    /// The dead-lettered job.
    pub job: JobId,
    /// Which of its letters.
    pub letter: ClaimVersion,
    /// What became of it.
    pub outcome: ReplayOutcome,
}

/// The report: one row for each letter that was met.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// The rows, in the order of the listing.
    pub rows: Vec<ReplayedRow>,
    /// Where to go on: after the last letter that was seen to. `None`: the listing has ended, or where
    /// it stopped early nothing was seen to yet.
    pub next: Option<Cursor>,
    /// Why it ended early; nothing is known yet of the letters after `next`.
    pub stopped: Option<Error>,
}

impl ReplayBatch {
    /// Means the letters of a filter; without a state in it, all that wait for an operator.
    pub fn new(filter: LetterFilter, actor: Actor) -> Self {
        Self {
            filter,
            actor,
            note: String::new(),
            safe_to_repeat: false,
            from: ReplayFrom::default(),
            size: 100,
            dry_run: false,
        }
    }

    /// Says what was done about the cause.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Vouches that what the jobs did so far may happen again.
    #[must_use]
    pub fn safe_to_repeat(mut self) -> Self {
        self.safe_to_repeat = true;
        self
    }

    /// Begins each at its first stage, without its checkpoint.
    #[must_use]
    pub fn from_start(mut self) -> Self {
        self.from = ReplayFrom::Start;
        self
    }

    /// Sets how many letters are read at once: 1 to 1,000; 100 unless set.
    #[must_use]
    pub fn size(mut self, size: usize) -> Self {
        self.size = size;
        self
    }

    /// Reports what would be asked for and asks for nothing.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Goes through one page of letters, from a cursor on.
    ///
    /// # Errors
    /// `Invalid` without a note or the word that repeating is safe, or for a size out of range; engine
    /// errors of the listing. Those of a replay end the page early, in [`ReplayReport::stopped`].
    pub async fn page(&self, store: &dyn Store, after: Option<Cursor>) -> Result<ReplayReport> {
        // Of the request, not of a job: the id is only there to ask.
        let unnamed = |error: Error| Error::new(error.kind(), "replay", error.message());
        self.request(JobId::new(), None).check().map_err(unnamed)?;
        let paging = Paging { size: self.size, after };
        let page = store.find(Query::Letters(self.filter.clone(), paging)).await?;
        let mut report = ReplayReport { next: page.next, ..ReplayReport::default() };
        let mut last = after;
        for found in page.items {
            let Found::DeadLetter(letter) = found else { continue };
            if letter.state.wants_attention() {
                match self.one(store, &letter).await {
                    Ok(row) => report.rows.push(row),
                    Err(error) => {
                        report.stopped = Some(error);
                        report.next = last;
                        break;
                    }
                }
            }
            let sequence = letter.claim_version.get();
            last = Some(Cursor { id: letter.job.as_uuid(), sequence });
        }
        Ok(report)
    }

    /// Goes through all pages. A second run goes on where one has stopped: what is replayed already does
    /// not wait any more.
    ///
    /// # Errors
    /// As [`Self::page`], of the first page; later ones end in [`ReplayReport::stopped`].
    pub async fn all(&self, store: &dyn Store) -> Result<ReplayReport> {
        let mut report = self.page(store, None).await?;
        while let (Some(after), None) = (report.next, &report.stopped) {
            match self.page(store, Some(after)).await {
                Ok(more) => {
                    report.rows.extend(more.rows);
                    (report.next, report.stopped) = (more.next, more.stopped);
                }
                Err(error) => report.stopped = Some(error),
            }
        }
        Ok(report)
    }

    fn request(&self, job: JobId, letter: Option<ClaimVersion>) -> Replay {
        let mut request = Replay::new(job, self.actor.clone()).note(self.note.clone());
        request.safe_to_repeat = self.safe_to_repeat;
        request.from = self.from;
        request.letter = letter;
        request
    }

    async fn one(&self, store: &dyn Store, letter: &DeadLetterView) -> Result<ReplayedRow> {
        let (job, version) = (letter.job, letter.claim_version);
        let row = |outcome| Ok(ReplayedRow { job, letter: version, outcome });
        if self.dry_run {
            return row(ReplayOutcome::Planned);
        }
        let request = Control::Replay(Box::new(self.request(job, Some(version))));
        let mut answer = store.control(request.clone()).await;
        for _ in 1..SENDS_MAX {
            match &answer {
                // The request names its letter and the id of a new job, so a repeat does no harm.
                Err(error) if may_be_sent_again(error) => {
                    answer = store.control(request.clone()).await;
                }
                _ => break,
            }
        }
        match answer {
            Ok(Controlled::Replayed { job, repeated: false }) => row(ReplayOutcome::Replayed(job)),
            Ok(Controlled::Replayed { job, .. }) => row(ReplayOutcome::Repeated(job)),
            Ok(_) => Err(Error::new(ErrorKind::Corrupt, "replay", "the store gave another answer")),
            Err(error) if is_refusal(&error) => row(ReplayOutcome::Refused(error)),
            Err(error) => Err(error),
        }
    }
}

fn may_be_sent_again(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::OutcomeUnknown
}

/// Whether an error is the store's word on this one letter.
fn is_refusal(error: &Error) -> bool {
    use ErrorKind::{Conflict, IllegalTransition, Invalid, NotFound};
    matches!(error.kind(), Conflict | IllegalTransition | Invalid | NotFound)
}
