//! Owns the translation of stored rows into the contract's rows, column by column in the order of
//! the tables. A value that does not fit is `Corrupt`, never guessed at.

use std::time::SystemTime;

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
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::error::{corrupt, engine};

mod claimed;

pub(crate) use claimed::ClaimedBy;

/// Reads a row's columns one after the other.
pub(crate) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(crate) fn of(row: &'r Row) -> Self {
        Self { row, next: 0 }
    }

    pub(crate) fn raw<T: FromSql<'r>>(&mut self) -> Result<T> {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at).map_err(engine)
    }

    /// A whole number, in the range of what holds it.
    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        self.maybe_number()?.ok_or_else(|| corrupt("a number is null"))
    }

    pub(crate) fn maybe_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>> {
        let number: Option<i64> = self.raw()?;
        let fit = |n: i64| T::try_from(n).map_err(|_| corrupt(format!("{n} is out of range")));
        number.map(fit).transpose()
    }

    fn small<T: TryFrom<i16>>(&mut self) -> Result<T> {
        let number: i16 = self.raw()?;
        T::try_from(number).map_err(|_| corrupt(format!("{number} is out of range")))
    }

    pub(crate) fn maybe<T>(&mut self, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        let text: Option<&str> = self.raw()?;
        text.map(|text| parse(text).map_err(stored)).transpose()
    }

    pub(crate) fn text<T>(&mut self, parse: impl Fn(&str) -> Result<T>) -> Result<T> {
        parse(self.raw::<&str>()?).map_err(stored)
    }

    pub(crate) fn maybe_id(&mut self) -> Result<Option<Uuid>> {
        self.raw()
    }

    pub(crate) fn id(&mut self) -> Result<Uuid> {
        self.maybe_id()?.ok_or_else(|| corrupt("an id is null"))
    }

    pub(crate) fn maybe_time(&mut self) -> Result<Option<Timestamp>> {
        let time: Option<SystemTime> = self.raw()?;
        time.map(|time| Timestamp::from_system_time(time).map_err(stored)).transpose()
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        self.maybe_time()?.ok_or_else(|| corrupt("a time is null"))
    }

    pub(crate) fn maybe_json(&mut self) -> Result<Option<Json>> {
        let text: Option<String> = self.raw()?;
        let limits = JsonLimits { bytes_max: usize::MAX, ..JsonLimits::default() };
        text.map(|text| Json::parse_with(text, &limits).map_err(stored)).transpose()
    }

    pub(crate) fn json(&mut self) -> Result<Json> {
        self.maybe_json()?.ok_or_else(|| corrupt("a document is null"))
    }

    pub(crate) fn hash(&mut self) -> Result<RequestHash> {
        RequestHash::from_bytes(self.raw::<&[u8]>()?).map_err(stored)
    }

    fn version(&mut self) -> Result<ClaimVersion> {
        ClaimVersion::new(self.raw()?)
    }

    fn lease_length(&mut self) -> Result<Option<LeaseLength>> {
        let ms: Option<u64> = self.maybe_number()?;
        ms.map(|ms| LeaseLength::from_millis(ms).map_err(stored)).transpose()
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
            queue: self.text(|text| QueueName::new(text))?,
            kind: self.text(|text| JobKind::new(text))?,
            lifecycle: self.text(|text| LifecycleName::new(text))?,
            revision: self.number()?,
            state: self.text(State::parse)?,
            stage: self.small()?,
            priority: self.raw()?,
            run_at: self.time()?,
            held: self.raw()?,
            again: self.raw()?,
            log: self.raw()?,
            attempts: self.number()?,
            attempts_max: self.number()?,
            executions: self.number()?,
            version: self.version()?,
            claim: self.maybe_id()?.map(ClaimId::from_uuid),
            last_verdict: self.maybe(VerdictKind::parse)?,
            lease: self.lease()?,
            step: self.number()?,
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
            attempts: self.number()?,
            attempts_max: self.number()?,
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
            limit: self.maybe_number()?,
            lease: self.lease_length()?,
            log: self.raw()?,
            keep_succeeded_s: self.raw()?,
            keep_failed_s: self.raw()?,
            keep_dead_s: self.raw()?,
            created_at: self.time()?,
            partition_limit: self.maybe_number()?,
            partition_rate: self.start_rate()?,
        })
    }

    fn start_rate(&mut self) -> Result<Option<StartRate>> {
        let (hourly, burst): (Option<i64>, Option<i64>) = (self.raw()?, self.raw()?);
        hourly.zip(burst).map(|(hourly, burst)| StartRate::from_columns(hourly, burst)).transpose()
    }

    pub(crate) fn turn(&mut self, queue: QueueName) -> Result<TurnRow> {
        let turn = self.raw()?;
        let partition: &str = self.raw()?;
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
            attempts: self.number()?,
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
