//! Owns versioned reruns: what a request to run a subject again is answered, given every job about
//! that version and the newest version there is.

use super::enqueue::Fate;
use super::known::{KnownRun, KnownSubject};
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::{NewJob, Subject};
use crate::lifecycle::State;
use crate::row::SubjectRow;

/// Whether a job asked for again is run: not when its version is past, under way, or has succeeded.
///
/// # Errors
/// `Conflict` naming the newest job when a higher version exists.
pub(super) fn fate(known: Option<&KnownSubject>, job: &NewJob, subject: &Subject) -> Result<Fate> {
    let Some(known) = known else { return Ok(Fate::New) };
    let runs = known.runs.iter().map(|run| (run.version, run.job));
    let newest = runs.chain(known.mark).max_by_key(|(version, _)| *version);
    if let Some((version, newest)) = newest.filter(|(version, _)| *version > subject.version) {
        let why = format!(
            "subject {:?} is at version {version}, asked for was {}",
            subject.name, subject.version
        );
        return Err(Error::conflict("enqueue", newest, why).about(format!("job {}", job.id)));
    }
    let same = || known.runs.iter().filter(|run| run.version == subject.version);
    let existing = |run: &KnownRun| Fate::Existing(run.job, Some(run.state), run.result.clone());
    if let Some(run) = same().find(|run| run.state == State::Succeeded) {
        return Ok(existing(run));
    }
    if let Some(run) = same().find(|run| matches!(run.state, State::Waiting | State::Leased)) {
        return Ok(existing(run));
    }
    Ok(match known.mark {
        // Only the mark is left of that version's job: nobody knows any more how it ended.
        Some((version, gone))
            if version == subject.version && same().all(|run| run.job != gone) =>
        {
            Fate::Existing(gone, None, None)
        }
        _ => Fate::New,
    })
}

/// What is known of a subject once a job has been added, and the mark to be written.
pub(super) fn mark(
    known: Option<&KnownSubject>,
    job: JobId,
    subject: &Subject,
) -> (KnownSubject, SubjectRow) {
    let mut next = known.cloned().unwrap_or_default();
    let before = next.mark.replace((subject.version, job));
    let version = subject.version;
    next.add(KnownRun { version, job, state: State::Waiting, result: None });
    let row = SubjectRow { name: subject.name.clone(), version, job, before };
    (next, row)
}
