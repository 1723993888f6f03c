//! Owns the translation of stored rows into the contract's rows, column by column in the order of
//! the tables. A value that does not fit is `Corrupt`, never guessed at.

use std::cell::RefCell;

use leasehold_core::fence::ClaimVersion;
use leasehold_core::json::{Json, JsonLimits};
use leasehold_core::row::{
    AuditRow, DeadLetterRow, DocumentRow, EventRow, JobRow, Lease, OutcomeRow, QueueRow, RecordRow,
    RequestRow, StartsRow, TokensRow, TombstoneRow, TransitionRow, TurnRow,
};
use leasehold_core::{
    Actor, BucketName, ClaimId, Error, EventId, EventState, IdempotencyKey, JobId, JobKind,
    LeaseLength, LetterState, LifecycleName, Namespace, Ordering, PartitionName, QueueName,
    RecordId, RecordKey, RequestHash, Result, Scope, StageName, StartRate, State, Subject,
    Timestamp, Topic, Verb, VerdictKind, WorkerId,
};
use rusqlite::Row;
use rusqlite::types::{FromSql, ValueRef};
use uuid::Uuid;

use crate::error::{corrupt, engine};

mod claimed;

thread_local! {
    /// The names last read: row after row holds the same ones, which are then shared.
    static QUEUE: RefCell<Option<QueueName>> = const { RefCell::new(None) };
    static KIND: RefCell<Option<JobKind>> = const { RefCell::new(None) };
    static LIFECYCLE: RefCell<Option<LifecycleName>> = const { RefCell::new(None) };
}

/// The name of a text: the last one where that is the same.
fn again<T>(last: &mut Option<T>, text: &str, as_str: fn(&T) -> &str) -> Result<T>
where
    T: Clone + for<'t> TryFrom<&'t str, Error = Error>,
{
    match last {
        Some(name) if as_str(name) == text => Ok(name.clone()),
        _ => Ok(last.insert(T::try_from(text)?).clone()),
    }
}

/// Reads a row's columns one after the other.
pub(crate) struct Columns<'r, 's> {
    row: &'r Row<'s>,
    next: usize,
}

impl<'r, 's> Columns<'r, 's> {
    pub(crate) fn of(row: &'r Row<'s>) -> Self {
        Self { row, next: 0 }
    }

    pub(crate) fn raw<T: FromSql>(&mut self) -> Result<T> {
        let at = self.next;
        self.next += 1;
        self.row.get(at).map_err(engine)
    }

    /// The next value where the row holds it, without a copy.
    fn value(&mut self) -> Result<ValueRef<'r>> {
        let at = self.next;
        self.next += 1;
        self.row.get_ref(at).map_err(engine)
    }

    pub(crate) fn maybe<T>(&mut self, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        match self.value()? {
            ValueRef::Null => Ok(None),
            value => {
                let text = value.as_str().map_err(|e| corrupt(e.to_string()))?;
                parse(text).map(Some).map_err(stored)
            }
        }
    }

    pub(crate) fn text<T>(&mut self, parse: impl Fn(&str) -> Result<T>) -> Result<T> {
        self.maybe(parse)?.ok_or_else(|| corrupt("a text is null"))
    }

    pub(crate) fn maybe_id(&mut self) -> Result<Option<Uuid>> {
        match self.value()? {
            ValueRef::Null => Ok(None),
            value => {
                let bytes = value.as_blob().map_err(|e| corrupt(e.to_string()))?;
                Uuid::from_slice(bytes).map(Some).map_err(|e| corrupt(e.to_string()))
            }
        }
    }

    pub(crate) fn id(&mut self) -> Result<Uuid> {
        self.maybe_id()?.ok_or_else(|| corrupt("an id is null"))
    }

    pub(crate) fn maybe_time(&mut self) -> Result<Option<Timestamp>> {
        let micros: Option<i64> = self.raw()?;
        micros.map(|micros| Timestamp::from_micros(micros).map_err(stored)).transpose()
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        self.maybe_time()?.ok_or_else(|| corrupt("a time is null"))
    }

    pub(crate) fn maybe_json(&mut self) -> Result<Option<Json>> {
        let limits = JsonLimits { bytes_max: usize::MAX, ..JsonLimits::default() };
        self.maybe(|text| Json::parse_with(text, &limits))
    }

    pub(crate) fn json(&mut self) -> Result<Json> {
        self.maybe_json()?.ok_or_else(|| corrupt("a document is null"))
    }

    pub(crate) fn hash(&mut self) -> Result<RequestHash> {
        let bytes = self.value()?.as_blob().map_err(|e| corrupt(e.to_string()))?;
        RequestHash::from_bytes(bytes).map_err(stored)
    }

    fn version(&mut self) -> Result<ClaimVersion> {
        ClaimVersion::new(self.raw()?)
    }

    fn lease_length(&mut self) -> Result<Option<LeaseLength>> {
        let ms: Option<u32> = self.raw()?;
        ms.map(|ms| LeaseLength::from_millis(u64::from(ms)).map_err(stored)).transpose()
    }

    fn lease(&mut self) -> Result<Option<Lease>> {
        let (worker, expires) = (self.maybe_id()?, self.maybe_time()?);
        let (heartbeat, length) = (self.maybe_time()?, self.lease_length()?);
        Ok(match (worker, expires, heartbeat, length) {
            (Some(worker), Some(expires_at), Some(heartbeat_at), Some(length)) => Some(Lease {
                worker: WorkerId::from_uuid(worker),
                expires_at,
                heartbeat_at,
                length,
            }),
            _ => None,
        })
    }

    fn subject(&mut self) -> Result<Option<Subject>> {
        let (name, version): (Option<String>, Option<i64>) = (self.raw()?, self.raw()?);
        Ok(name.zip(version).map(|(name, version)| Subject { name, version }))
    }

    pub(crate) fn document(&mut self) -> Result<DocumentRow> {
        let namespace = self.text(|text| Namespace::new(text))?;
        let key = self.text(|text| RecordKey::new(text))?;
        Ok(DocumentRow {
            id: RecordId { namespace, key },
            version: self.raw()?,
            body: self.maybe_json()?,
            created_at: self.time()?,
            updated_at: self.time()?,
            expires_at: self.maybe_time()?,
        })
    }

    pub(crate) fn record(&mut self, (scope, key): (Scope, IdempotencyKey)) -> Result<RecordRow> {
        let (hash, response) = (self.hash()?, self.maybe_json()?);
        let (created_at, expires_at) = (self.time()?, self.time()?);
        Ok(RecordRow { scope, key, hash, response, created_at, expires_at })
    }

    pub(crate) fn tokens(&mut self, bucket: BucketName) -> Result<TokensRow> {
        Ok(TokensRow { bucket, level: self.raw()?, at: self.time()?, full_at: self.time()? })
    }

    pub(crate) fn audit(&mut self) -> Result<AuditRow> {
        Ok(AuditRow {
            id: self.id()?,
            at: self.time()?,
            actor: self.text(|text| Actor::new(text))?,
            action: self.raw()?,
            target: self.raw()?,
            detail: self.raw()?,
        })
    }

    pub(crate) fn job(&mut self) -> Result<JobRow> {
        let id = JobId::from_uuid(self.id()?);
        self.job_of(id).map_err(|error| error.damaging(id))
    }

    fn job_of(&mut self, id: JobId) -> Result<JobRow> {
        Ok(JobRow {
            id,
            queue: self
                .text(|text| QUEUE.with_borrow_mut(|last| again(last, text, QueueName::as_str)))?,
            kind: self.kind()?,
            lifecycle: self.lifecycle()?,
            revision: self.raw()?,
            state: self.text(State::parse)?,
            stage: self.raw()?,
            priority: self.raw()?,
            run_at: self.time()?,
            held: self.raw()?,
            again: self.raw()?,
            log: self.raw()?,
            attempts: self.raw()?,
            attempts_max: self.raw()?,
            executions: self.raw()?,
            version: self.version()?,
            claim: self.maybe_id()?.map(ClaimId::from_uuid),
            last_verdict: self.maybe(VerdictKind::parse)?,
            lease: self.lease()?,
            step: self.raw()?,
            cancel_requested: self.raw()?,
            transition_seq: self.raw()?,
            event_seq: self.raw()?,
            created_at: self.time()?,
            updated_at: self.time()?,
            started_at: self.maybe_time()?,
            finished_at: self.maybe_time()?,
            partition: self.maybe(|text| PartitionName::new(text))?,
        })
    }

    fn kind(&mut self) -> Result<JobKind> {
        self.text(|text| KIND.with_borrow_mut(|last| again(last, text, JobKind::as_str)))
    }

    fn lifecycle(&mut self) -> Result<LifecycleName> {
        self.text(|text| LIFECYCLE.with_borrow_mut(|last| again(last, text, LifecycleName::as_str)))
    }

    pub(crate) fn request(&mut self, job: JobId) -> Result<RequestRow> {
        self.request_of(job).map_err(|error| error.damaging(job))
    }

    fn request_of(&mut self, job: JobId) -> Result<RequestRow> {
        Ok(RequestRow {
            job,
            payload: self.json()?,
            hash: self.hash()?,
            scope: self.text(|text| Scope::new(text))?,
            key: self.maybe(|text| IdempotencyKey::new(text))?,
            subject: self.subject()?,
            traceparent: self.raw()?,
        })
    }

    /// What earlier executions of a job left.
    pub(crate) fn checkpoint(&mut self, job: JobId) -> Result<Option<Json>> {
        self.maybe_json().map_err(|error| error.damaging(job))
    }

    pub(crate) fn outcome(&mut self) -> Result<OutcomeRow> {
        Ok(OutcomeRow {
            checkpoint: self.maybe_json()?,
            result: self.maybe_json()?,
            failure: self.maybe_json()?,
        })
    }

    pub(crate) fn event(&mut self) -> Result<EventRow> {
        let id = EventId::from_uuid(self.id()?);
        self.event_of(id).map_err(|error| error.damaging_event(id))
    }

    fn event_of(&mut self, id: EventId) -> Result<EventRow> {
        let topic = self.text(|text| Topic::new(text))?;
        let (namespace, key): (String, Option<String>) = (self.raw()?, self.raw()?);
        let ordering = Ordering::from_stored(&namespace, key.as_deref()).map_err(stored)?;
        Ok(EventRow {
            id,
            topic,
            ordering,
            sequence: self.raw()?,
            payload: self.json()?,
            traceparent: self.raw()?,
            state: self.text(EventState::parse)?,
            ordered: self.raw()?,
            run_at: self.time()?,
            attempts: self.raw()?,
            attempts_max: self.raw()?,
            version: self.version()?,
            claim: self.maybe_id()?.map(ClaimId::from_uuid),
            last_verdict: self.maybe(VerdictKind::parse)?,
            lease: self.lease()?,
            failure: self.maybe_json()?,
            created_at: self.time()?,
            updated_at: self.time()?,
            finished_at: self.maybe_time()?,
        })
    }

    pub(crate) fn tombstone(&mut self) -> Result<TombstoneRow> {
        Ok(TombstoneRow {
            job: JobId::from_uuid(self.id()?),
            scope: self.text(|text| Scope::new(text))?,
            key: self.maybe(|text| IdempotencyKey::new(text))?,
            queue: self.text(|text| QueueName::new(text))?,
            subject: self.subject()?,
            hash: self.hash()?,
            outcome: self.text(State::parse)?,
            version: self.version()?,
            claim: self.maybe_id()?.map(ClaimId::from_uuid),
            last_verdict: self.maybe(VerdictKind::parse)?,
            pruned_at: self.time()?,
        })
    }

    pub(crate) fn queue(&mut self) -> Result<QueueRow> {
        Ok(QueueRow {
            name: self.text(|text| QueueName::new(text))?,
            paused: self.raw()?,
            limit: self.raw()?,
            lease: self.lease_length()?,
            log: self.raw()?,
            keep_succeeded_s: self.raw()?,
            keep_failed_s: self.raw()?,
            keep_dead_s: self.raw()?,
            created_at: self.time()?,
            partition_limit: self.raw()?,
            partition_rate: self.start_rate()?,
        })
    }

    fn start_rate(&mut self) -> Result<Option<StartRate>> {
        let (hourly, burst): (Option<i64>, Option<i64>) = (self.raw()?, self.raw()?);
        hourly.zip(burst).map(|(hourly, burst)| StartRate::from_columns(hourly, burst)).transpose()
    }

    pub(crate) fn turn(&mut self, queue: QueueName) -> Result<TurnRow> {
        let (turn, partition): (i64, String) = (self.raw()?, self.raw()?);
        let named = (!partition.is_empty()).then(|| PartitionName::new(partition)).transpose();
        Ok(TurnRow { queue, turn, partition: named.map_err(stored)? })
    }

    /// The bucket of a partition; `None` where its columns are null.
    pub(crate) fn starts(
        &mut self,
        queue: &QueueName,
        partition: &PartitionName,
    ) -> Result<Option<StartsRow>> {
        let level: Option<i64> = self.raw()?;
        let (at, open_at, full_at) = (self.maybe_time()?, self.maybe_time()?, self.maybe_time()?);
        Ok(match (level, at, open_at, full_at) {
            (Some(level), Some(at), Some(open_at), Some(full_at)) => Some(StartsRow {
                queue: queue.clone(),
                partition: partition.clone(),
                level,
                at,
                open_at,
                full_at,
            }),
            _ => None,
        })
    }

    pub(crate) fn dead_letter(&mut self) -> Result<DeadLetterRow> {
        Ok(DeadLetterRow {
            job: JobId::from_uuid(self.id()?),
            version: self.version()?,
            queue: self.text(|text| QueueName::new(text))?,
            kind: self.text(|text| JobKind::new(text))?,
            stage: self.text(|text| StageName::new(text))?,
            error_class: self.raw()?,
            failure: self.json()?,
            attempts: self.raw()?,
            last_failure_at: self.time()?,
            state: self.text(LetterState::parse)?,
            replay_job: self.maybe_id()?.map(JobId::from_uuid),
            changed_at: self.maybe_time()?,
            changed_by: self.maybe(|text| Actor::new(text))?,
            note: self.raw()?,
        })
    }

    pub(crate) fn transition(&mut self) -> Result<TransitionRow> {
        Ok(TransitionRow {
            job: JobId::from_uuid(self.id()?),
            sequence: self.raw()?,
            at: self.time()?,
            verb: self.text(verb)?,
            from: self.raw()?,
            to: self.raw()?,
            version: self.version()?,
            worker: self.maybe_id()?.map(WorkerId::from_uuid),
            actor: self.maybe(|text| Actor::new(text))?,
        })
    }
}

fn verb(text: &str) -> Result<Verb> {
    let found = Verb::ALL.into_iter().find(|verb| verb.as_str() == text);
    found.ok_or_else(|| corrupt(format!("{text:?} is not a verb")))
}

/// What a name or number refused when it came in is damage when it comes out.
fn stored(error: Error) -> Error {
    corrupt(format!("a stored value: {}", error.message()))
}

/// Whole microseconds, as they are stored.
pub(crate) fn micros(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_micros)
}
