//! Owns enqueue: which items are new, which exist, which conflict, and the rows of the new ones.

use super::changes::Draft;
use super::waits::Call;
use super::{Known, KnownJob, KnownKey, KnownSubject, Work, rerun};
use crate::after::OnFailure;
use crate::error::{Error, ErrorKind, Result};
use crate::fence::ClaimVersion;
use crate::hints::{HintKind, Hints};
use crate::id::JobId;
use crate::job::{Enqueued, NewJob, RunAt, Subject};
use crate::json::Json;
use crate::lifecycle::{Lifecycle, Place, State, Verb};
use crate::name::{IdempotencyKey, QueueName, Scope};
use crate::request_hash::RequestHash;
use crate::row::{JobRow, KeyRow, RequestRow};

/// What an enqueue has to be told of; see [`Known`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnqueueWants {
    /// Ids that may exist, in order, each once.
    pub ids: Vec<JobId>,
    /// Keys that may be taken, in order, each once.
    pub keys: Vec<(Scope, IdempotencyKey)>,
    /// Queues whose log setting matters, in order, each once.
    pub queues: Vec<QueueName>,
    /// Subjects to be run again, with the version asked for, in order, each once.
    pub subjects: Vec<(String, i64)>,
}

impl EnqueueWants {
    /// What some new jobs have to be told of.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a NewJob>) -> Self {
        let mut it = Self::default();
        for job in jobs {
            it.ids.push(job.id);
            it.queues.push(job.queue.clone());
            if let (true, Some(subject)) = (job.rerun, &job.subject) {
                it.subjects.push((subject.name.clone(), subject.version));
            }
            it.keys.extend(job.key.clone().map(|key| (job.scope.clone(), key)));
        }
        it.ids.sort_unstable();
        it.ids.dedup();
        it.keys.sort_unstable();
        it.keys.dedup();
        it.queues.sort_unstable();
        it.queues.dedup();
        it.subjects.sort_unstable();
        it.subjects.dedup();
        it
    }
}

/// What becomes of one new job.
pub(super) enum Fate {
    New,
    /// The job there is, its state where that is known, its result where it is asked for.
    Existing(JobId, Option<State>, Option<Json>),
}

/// One drafted job: its id, whether it is new, its state, the result of a run that has succeeded.
pub(super) type Drafted = (JobId, bool, Option<State>, Option<Json>);

impl Work {
    /// Checks a whole batch before anything is decided.
    ///
    /// # Errors
    /// `Invalid` or `NotFound` (the lifecycle) naming the first item that breaks a rule.
    pub fn check_new_jobs(&self, jobs: &[NewJob]) -> Result<()> {
        self.limits.check_batch("enqueue", jobs.len())?;
        jobs.iter().try_for_each(|job| self.check_new_job(job))?;
        self.check_waits(jobs).map(|_| ())
    }

    fn check_new_job(&self, job: &NewJob) -> Result<()> {
        job.check(&self.limits)?;
        self.check_id_time("enqueue", job.id.unix_ms(), format!("job {}", job.id))?;
        let lifecycle = self.newest_lifecycle(job)?;
        let may_cancel = || lifecycle.after(Place::Waiting, Verb::RequestCancel).is_some();
        if job.after.iter().any(|after| after.on_failure != OnFailure::Run) && !may_cancel() {
            let why = format!(
                "lifecycle {} lists no cancel of waiting jobs, so it can wait for others only by \
                 OnFailure::Run",
                job.lifecycle
            );
            return Err(Error::invalid("enqueue", why).about(format!("job {}", job.id)));
        }
        Ok(())
    }

    pub(super) fn check_id_time(
        &self,
        operation: &'static str,
        unix_ms: Option<i64>,
        subject: String,
    ) -> Result<()> {
        let Some(max) = self.limits.id_skew_max else { return Ok(()) };
        let refuse = |why: String| Err(Error::invalid(operation, why).about(&subject));
        let Some(ms) = unix_ms else { return refuse("the id is not a UUIDv7".to_owned()) };
        let off = (self.now.as_micros() / 1000).abs_diff(ms);
        if u128::from(off) <= max.as_millis() {
            return Ok(());
        }
        refuse(format!(
            "the id's time is {} s off the store's clock, at most {} s are allowed",
            off / 1000,
            max.as_secs()
        ))
    }

    fn newest_lifecycle(&self, job: &NewJob) -> Result<&Lifecycle> {
        self.lifecycles.newest(&job.lifecycle).map(|found| &**found).ok_or_else(|| {
            let why = format!("lifecycle {} is not registered", job.lifecycle);
            Error::new(ErrorKind::NotFound, "enqueue", why).about(format!("job {}", job.id))
        })
    }

    /// Decides a batch of new jobs that [`Work::check_new_jobs`] has let through; each answers for
    /// itself. What they wait for is in hand: see [`Work::parents_wanted`].
    ///
    /// # Errors
    /// `NotFound` naming a job that one is to wait for; nothing may be written then. Per item
    /// `Conflict` naming the job that holds the key or id.
    pub fn enqueue(&mut self, jobs: &[NewJob], hints: &Hints) -> Result<Vec<Result<Enqueued>>> {
        self.enqueue_hashed(jobs, &[], hints)
    }

    /// As [`Work::enqueue`], given the jobs' request hashes, so that they can be made where nobody waits
    /// for them; those that are missing are made here.
    ///
    /// # Errors
    /// As [`Work::enqueue`].
    pub fn enqueue_hashed(
        &mut self,
        jobs: &[NewJob],
        hashes: &[RequestHash],
        hints: &Hints,
    ) -> Result<Vec<Result<Enqueued>>> {
        let mut call = Call::new();
        let waits = jobs.iter().any(|job| !job.after.is_empty());
        let mut answers: Vec<Option<Result<Enqueued>>> = Vec::new();
        answers.resize_with(jobs.len(), || None);
        for at in self.check_waits(jobs)? {
            let (Some(job), Some(slot)) = (jobs.get(at), answers.get_mut(at)) else { continue };
            let hash = hashes.get(at).copied().unwrap_or_else(|| job.request_hash());
            let answer = self.enqueue_one(job, hash, hints, &call);
            match &answer {
                Err(error) if error.kind() != ErrorKind::Conflict => {
                    return answer.map(|_| Vec::new());
                }
                answer if waits => {
                    let stands_for = answer.as_ref().ok().map(Enqueued::job);
                    call.entry(job.id).or_insert(stands_for);
                }
                _ => {}
            }
            *slot = Some(answer);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn enqueue_one(
        &mut self,
        job: &NewJob,
        hash: RequestHash,
        hints: &Hints,
        call: &Call,
    ) -> Result<Enqueued> {
        let mut draft = Draft::default();
        let (id, is_new, state, result) = self.draft_job(&mut draft, job, hash, call)?;
        self.merge(draft);
        let enqueued = Enqueued::from_parts(id, is_new, state, hints.wake(HintKind::Jobs));
        Ok(enqueued.with_result(result))
    }

    /// Adds a new job to a draft.
    pub(super) fn draft_job(
        &self,
        draft: &mut Draft,
        job: &NewJob,
        hash: RequestHash,
        call: &Call,
    ) -> Result<Drafted> {
        match self.fate(&draft.known, job, hash)? {
            Fate::Existing(id, state, result) => return Ok((id, false, state, result)),
            Fate::New => {}
        }
        let mut row = self.new_row(job, self.newest_lifecycle(job)?);
        if !job.after.is_empty() {
            row = self.draft_waits(draft, job, row, call)?;
            // It may move on within this transaction.
            draft.put(row.clone());
        }
        let state = row.state;
        if let (true, Some(subject)) = (job.rerun, &job.subject) {
            let (known, row) = rerun::mark(self.subject(&draft.known, subject), job.id, subject);
            draft.known.subjects.insert(subject.name.clone(), known);
            draft.changes.subjects.push(row);
        }
        if let Some(key) = &job.key {
            let expires_at = job.key_ttl.map(|ttl| self.now.plus(ttl));
            let (scope, key) = (job.scope.clone(), key.clone());
            let known = KnownKey { job: job.id, hash, expires_at, state: Some(state) };
            draft.known.keys.insert((scope.clone(), key.clone()), known);
            draft.changes.keys.push(KeyRow { scope, key, job: job.id, hash, expires_at });
        }
        draft.known.jobs.insert(job.id, KnownJob { hash, state });
        if !draft.changes.queues.contains(&job.queue) {
            draft.changes.queues.push(job.queue.clone());
        }
        let request = RequestRow {
            job: job.id,
            payload: job.payload.clone(),
            hash,
            scope: job.scope.clone(),
            key: job.key.clone(),
            subject: job.subject.clone(),
            traceparent: job.traceparent.clone(),
        };
        draft.changes.jobs_new.push((row, request));
        Ok((job.id, true, Some(state), None))
    }

    fn subject<'a>(&'a self, fresh: &'a Known, subject: &Subject) -> Option<&'a KnownSubject> {
        fresh.subjects.get(&subject.name).or_else(|| self.known.subjects.get(&subject.name))
    }

    fn fate(&self, fresh: &Known, job: &NewJob, hash: RequestHash) -> Result<Fate> {
        let known_job = fresh.jobs.get(&job.id).or_else(|| self.known.jobs.get(&job.id));
        if let Some(known) = known_job {
            if !known.hash.matches(&hash) {
                let why = "the id is taken by another request";
                return Err(
                    Error::conflict("enqueue", job.id, why).about(format!("job {}", job.id))
                );
            }
            return Ok(Fate::Existing(job.id, Some(known.state), None));
        }
        match self.fate_by_key(fresh, job, hash)? {
            Fate::New => {}
            existing => return Ok(existing),
        }
        match &job.subject {
            Some(subject) if job.rerun => rerun::fate(self.subject(fresh, subject), job, subject),
            _ => Ok(Fate::New),
        }
    }

    fn fate_by_key(&self, fresh: &Known, job: &NewJob, hash: RequestHash) -> Result<Fate> {
        let Some(key) = &job.key else { return Ok(Fate::New) };
        let slot = (job.scope.clone(), key.clone());
        let known = fresh.keys.get(&slot).or_else(|| self.known.keys.get(&slot));
        match known {
            Some(known) if known.expires_at.is_some_and(|at| at <= self.now) => Ok(Fate::New),
            Some(known) if !known.hash.matches(&hash) => {
                let why = format!("key {:?} is taken by another request", key.as_str());
                Err(Error::conflict("enqueue", known.job, why).about(format!("job {}", job.id)))
            }
            Some(known) if known.job == job.id => Ok(Fate::New),
            Some(known) => Ok(Fate::Existing(known.job, known.state, None)),
            None => Ok(Fate::New),
        }
    }

    fn new_row(&self, job: &NewJob, lifecycle: &Lifecycle) -> JobRow {
        let run_at = match job.run_at {
            RunAt::Now => self.now,
            RunAt::After(delay) => self.now.plus(delay),
            RunAt::At(at) => at.max(self.now),
        };
        let log = self.known.queue_logs.get(&job.queue).copied().flatten();
        JobRow {
            id: job.id,
            queue: job.queue.clone(),
            kind: job.kind.clone(),
            lifecycle: job.lifecycle.clone(),
            revision: lifecycle.revision(),
            state: State::Waiting,
            stage: 0,
            priority: job.priority,
            run_at,
            held: false,
            again: false,
            log: log.unwrap_or(lifecycle.logs_by_default()),
            attempts: 0,
            attempts_max: u32::from(job.max_attempts.unwrap_or(lifecycle.budget().attempts)),
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
            partition: job.partition.clone(),
        }
    }
}
