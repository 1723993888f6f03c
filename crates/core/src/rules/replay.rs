//! Owns what becomes of a job's dead letters: the replay that runs it again (in place or as a new job),
//! what that job's end means for the letter, and the notes of operators.

use std::collections::{BTreeMap, BTreeSet};

use super::Work;
use super::changes::{Changes, Draft};
use crate::control::Controlled;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Ordering;
use crate::failure::Failure;
use crate::fence::ClaimVersion;
use crate::id::JobId;
use crate::json::{Json, escape_text};
use crate::letter::{LetterAct, LetterState, NOTE_BYTES_MAX, Replay, ReplayFrom, check_note};
use crate::lifecycle::{Lifecycle, Place, State, Verb};
use crate::name::Actor;
use crate::row::{DeadLetterRow, JobRow, KeyRow, OutcomePatch, ReplayRow, RequestRow};
use crate::sanitize::sanitize;

/// The dead letters of one transaction.
#[derive(Debug, Default)]
pub(super) struct Letters {
    rows: BTreeMap<(JobId, ClaimVersion), DeadLetterRow>,
    changed: BTreeSet<(JobId, ClaimVersion)>,
    /// Replaying jobs with events that have not gone out.
    unsent: BTreeSet<JobId>,
}

impl Letters {
    pub(super) fn write(&mut self, changes: &mut Changes) {
        let changed = std::mem::take(&mut self.changed);
        changes.letters.extend(changed.iter().filter_map(|slot| self.rows.get(slot).cloned()));
    }

    fn put(&mut self, row: DeadLetterRow) {
        let slot = (row.job, row.version);
        self.changed.insert(slot);
        self.rows.insert(slot, row);
    }

    /// The letters that a job replays.
    fn replayed_by(&self, job: JobId) -> Vec<DeadLetterRow> {
        let by = |row: &&DeadLetterRow| {
            row.replay_job == Some(job) && row.state == LetterState::Replaying
        };
        self.rows.values().filter(by).cloned().collect()
    }
}

impl Work {
    /// The loaded jobs that may be replays and have not ended; an engine loads the letters that they
    /// replay ([`Work::load_letters`]) before anything is decided.
    ///
    /// Replays are among the jobs that have failed before, so that others cost no question.
    pub fn replays_wanted(&self) -> Vec<JobId> {
        let open = |row: &&JobRow| row.again && !row.state.is_terminal();
        self.jobs.values().filter(open).map(|row| row.id).collect()
    }

    /// Hands over locked dead letters.
    pub fn load_letters(&mut self, rows: impl IntoIterator<Item = DeadLetterRow>) {
        for row in rows {
            self.letters.rows.entry((row.job, row.version)).or_insert(row);
        }
    }

    /// Names replaying jobs that have events of their own which have not gone out.
    pub fn load_unsent(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        self.letters.unsent.extend(jobs);
    }

    /// What a job's end means for the letters that it replays.
    pub(super) fn end_replay(&mut self, row: &JobRow, changes: &mut Changes) {
        let unsent = self.is_unsent(row.id, changes);
        for mut letter in self.letters.replayed_by(row.id) {
            let again = changes.dead_letters.iter_mut().find(|fresh| fresh.job == row.id);
            letter.state = match (row.state, again) {
                (State::Succeeded, _) if unsent => continue,
                (State::Succeeded, _) => LetterState::Resolved,
                (_, Some(again)) => {
                    let same = again.error_class == letter.error_class && is_final(&again.failure);
                    if same {
                        again.state = LetterState::Escalated;
                    }
                    LetterState::Superseded
                }
                // A retry may still take it back.
                _ if self.returns(row).unwrap_or(false) => continue,
                _ => LetterState::Open,
            };
            letter.changed_at = Some(self.now);
            self.letters.put(letter);
        }
    }

    fn is_unsent(&self, job: JobId, changes: &Changes) -> bool {
        let own = Ordering::Job(job);
        let news = changes.events_new.iter().chain(&self.changes.events_new);
        self.letters.unsent.contains(&job) || news.into_iter().any(|event| event.ordering == own)
    }

    /// The jobs whose own events this transaction has delivered; their letters may close.
    pub fn delivered_of_jobs(&self) -> Vec<JobId> {
        let events = self.changed_events.iter().filter_map(|id| self.events.get(id));
        let jobs: BTreeSet<JobId> = events
            .filter(|event| event.state == crate::event::EventState::Delivered)
            .filter_map(|event| match event.ordering {
                Ordering::Job(job) => Some(job),
                _ => None,
            })
            .collect();
        jobs.into_iter().collect()
    }

    /// Closes loaded letters whose replays have succeeded and have sent everything.
    pub fn close_letters(&mut self, rows: impl IntoIterator<Item = DeadLetterRow>) {
        for mut letter in rows {
            letter.state = LetterState::Resolved;
            letter.changed_at = Some(self.now);
            self.letters.put(letter);
        }
    }

    fn letter_of(
        &self,
        operation: &'static str,
        job: JobId,
        version: Option<ClaimVersion>,
    ) -> Result<DeadLetterRow> {
        let about = |e: Error| e.about(format!("job {job}"));
        let mut own = self.letters.rows.values().filter(|row| row.job == job);
        let found = match version {
            Some(version) => own.find(|row| row.version == version),
            None => own.next_back(),
        };
        if let Some(row) = found {
            return Ok(row.clone());
        }
        let (kind, why) = match (self.jobs.get(&job), self.tombstones.get(&job)) {
            (Some(_), _) if version.is_some() => {
                (ErrorKind::NotFound, "there is no such dead letter".to_owned())
            }
            (Some(row), _) => {
                let why = format!("it is {}, there is no dead letter", row.state);
                (ErrorKind::IllegalTransition, why)
            }
            (None, Some(_)) => {
                let why = "it has been pruned, its payload and its dead letters with it";
                (ErrorKind::NotFound, why.to_owned())
            }
            (None, None) => (ErrorKind::NotFound, "there is no such job".to_owned()),
        };
        Err(about(Error::new(kind, operation, why)))
    }

    /// Runs a loaded dead-lettered job again; its letters are loaded, and where it takes a new job
    /// ([`Work::replays_anew`]) also what it was asked for.
    ///
    /// # Errors
    /// `Invalid` without a note or the word that repeating is safe; `NotFound`; `IllegalTransition` when
    /// the letter is closed or the job is not dead; `Conflict` when the new id is taken.
    pub fn replay(
        &mut self,
        replay: &Replay,
        asked: Option<(RequestRow, Option<Json>)>,
    ) -> Result<Controlled> {
        replay.check()?;
        let mut letter = self.letter_of("replay", replay.job, replay.letter)?;
        let row = self.owned_row("replay", replay.job)?;
        let about = |e: Error| e.about(format!("job {}", replay.job));
        let refuse = |why: String| about(Error::new(ErrorKind::IllegalTransition, "replay", why));
        match (letter.state, letter.replay_job) {
            (state, Some(job)) if !state.wants_attention() => {
                return Ok(Controlled::Replayed { job, repeated: true });
            }
            (state, _) if !state.wants_attention() => {
                return Err(refuse(format!("its dead letter is {state}")));
            }
            _ => {}
        }
        let lifecycle = self.lifecycle(&row)?.clone();
        if !is_dead(&row, &lifecycle) {
            return Err(refuse(format!("it is {}, only dead letters are replayed", row.state)));
        }
        let mut draft = Draft::default();
        let job = match lifecycle.after(row.place(), Verb::Replay) {
            Some(to) => self.draft_in_place(&mut draft, row, to, replay)?,
            None => self.draft_anew(&mut draft, &row, &letter, replay, asked)?,
        };
        self.draft_audit(
            &mut draft,
            &replay.actor,
            "replay",
            format!("job {}", replay.job),
            Some(&replay.note),
        );
        letter.state = LetterState::Replaying;
        letter.replay_job = Some(job);
        self.sign(&mut letter, &replay.actor, &replay.note);
        self.letters.put(letter);
        self.merge(draft);
        Ok(Controlled::Replayed { job, repeated: false })
    }

    /// Whether a replay of a loaded job takes a new job, for which an engine loads what the old one was
    /// asked for, and its checkpoint.
    pub fn replays_anew(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|row| {
            row.state.is_terminal()
                && self.lifecycle(row).is_ok_and(|it| it.after(row.place(), Verb::Replay).is_none())
        })
    }

    fn draft_in_place(
        &self,
        draft: &mut Draft,
        mut row: JobRow,
        to: Place,
        replay: &Replay,
    ) -> Result<JobId> {
        let id = row.id;
        row.attempts = 0;
        row.run_at = self.now;
        row.cancel_requested = false;
        if replay.from == ReplayFrom::Start {
            row.stage = 0;
            draft.changes.checkpoints_dropped.push(id);
        }
        let row = self.move_job(draft, row, Verb::Replay, to, Some(&replay.actor))?;
        draft.put(row);
        Ok(id)
    }

    fn draft_anew(
        &self,
        draft: &mut Draft,
        old: &JobRow,
        letter: &DeadLetterRow,
        replay: &Replay,
        asked: Option<(RequestRow, Option<Json>)>,
    ) -> Result<JobId> {
        let id = replay.new_job;
        let about = format!("job {}", replay.job);
        self.check_id_time("replay", id.unix_ms(), format!("job {id}"))?;
        if id == old.id || self.known.jobs.contains_key(&id) {
            let why = "the id of the new job is taken";
            return Err(Error::conflict("replay", id, why).about(about));
        }
        let missing = || Error::new(ErrorKind::Corrupt, "replay", "what was asked for is gone");
        let (request, checkpoint) = asked.ok_or_else(|| missing().about(about))?;
        let row = self.replay_row(old, replay);
        draft.known.jobs.insert(id, super::KnownJob { hash: request.hash, state: State::Waiting });
        if let Some(key) = &request.key {
            // Whoever of the chain holds the key passes it on.
            for holder in [Some(old.id), letter.replay_job].into_iter().flatten() {
                let (scope, key) = (request.scope.clone(), key.clone());
                draft.changes.keys_passed.push((
                    holder,
                    KeyRow { scope, key, job: id, hash: request.hash, expires_at: None },
                ));
            }
        }
        if let (ReplayFrom::FailedStage, Some(checkpoint)) = (replay.from, checkpoint) {
            draft.changes.outcomes.push(OutcomePatch {
                job: id,
                checkpoint: Some(checkpoint),
                result: None,
                failure: None,
                failed_at: None,
            });
        }
        draft.changes.replays.push(ReplayRow { job: id, replay_of: old.id });
        draft.changes.jobs_new.push((row, RequestRow { job: id, ..request }));
        Ok(id)
    }

    /// The row of the new job: what was asked for, a fresh budget, a count of claims of its own.
    fn replay_row(&self, old: &JobRow, replay: &Replay) -> JobRow {
        let resumes = replay.from == ReplayFrom::FailedStage
            && self
                .lifecycle(old)
                .is_ok_and(|it| it.resume_at() == crate::lifecycle::ResumeAt::FailedStage);
        JobRow {
            id: replay.new_job,
            state: State::Waiting,
            stage: if resumes { old.stage } else { 0 },
            run_at: self.now,
            held: false,
            again: true,
            attempts: 0,
            executions: 0,
            version: ClaimVersion::ZERO,
            claim: None,
            last_verdict: None,
            lease: None,
            step: 0,
            cancel_requested: false,
            transition_seq: 0,
            event_seq: 0,
            created_at: self.now,
            updated_at: self.now,
            started_at: None,
            finished_at: None,
            ..old.clone()
        }
    }

    /// Annotates, closes or escalates a loaded job's newest dead letter.
    ///
    /// # Errors
    /// `Invalid` without a note; `NotFound`; `IllegalTransition` where there is no letter, or the act does
    /// not fit its state.
    pub fn note_letter(
        &mut self,
        act: LetterAct,
        job: JobId,
        actor: &Actor,
        note: &str,
    ) -> Result<Controlled> {
        check_note(act.as_str(), job, note)?;
        let mut letter = self.letter_of(act.as_str(), job, None)?;
        let to = match (act, letter.state) {
            (LetterAct::Annotate, state) => state,
            (LetterAct::Resolve, LetterState::Resolved)
            | (LetterAct::Escalate, LetterState::Escalated) => return Ok(Controlled::Unchanged),
            (LetterAct::Resolve, LetterState::Superseded)
            | (LetterAct::Escalate, LetterState::Superseded | LetterState::Replaying) => {
                let why = format!("its dead letter is {}", letter.state);
                let error = Error::new(ErrorKind::IllegalTransition, act.as_str(), why);
                return Err(error.about(format!("job {job}")));
            }
            (LetterAct::Resolve, _) => LetterState::Resolved,
            (LetterAct::Escalate, _) => LetterState::Escalated,
        };
        letter.state = to;
        self.sign(&mut letter, actor, note);
        let mut draft = Draft::default();
        let target = format!("job {job}");
        self.draft_audit(&mut draft, actor, act.as_str(), target, Some(note));
        self.letters.put(letter);
        self.merge(draft);
        Ok(Controlled::Done)
    }

    fn sign(&self, letter: &mut DeadLetterRow, actor: &Actor, note: &str) {
        letter.changed_at = Some(self.now);
        letter.changed_by = Some(actor.clone());
        letter.note = Some(escape_text(&sanitize(note), NOTE_BYTES_MAX));
    }
}

/// Whether a job is a dead letter: by its state, or where its lifecycle has none by its failure.
fn is_dead(row: &JobRow, lifecycle: &Lifecycle) -> bool {
    row.state == State::DeadLetter
        || (row.state == State::Failed && !lifecycle.reaches(State::DeadLetter))
}

/// Whether a stored failure is of a class that no retry mends.
fn is_final(failure: &Json) -> bool {
    Failure::from_json(failure).is_ok_and(|failure| !failure.is_retryable())
}
