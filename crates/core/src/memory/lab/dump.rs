//! Owns the canonical text of every row, column by column as the engines' tables name them.

use crate::error::Result;
use crate::lab::{Cell, Dump};
use crate::memory::state::{Blob, Outcome, State};
use crate::name::PartitionName;
use crate::record::{Rate, RecordId};
use crate::row::{
    AuditRow, DeadLetterRow, DocumentRow, EventRow, JobRow, KeyRow, Lease, QueueRow, RecordRow,
    RequestRow, StartsRow, TokensRow, TombstoneRow, TransitionRow, TurnRow, WaitRow,
};
use crate::time::Timestamp;

type Row = Vec<(&'static str, Cell)>;

fn int(n: impl Into<i64>) -> Cell {
    Cell::Int(n.into())
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn time(at: Timestamp) -> Cell {
    Cell::Int(at.as_micros())
}

fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
    value.map_or(Cell::Null, cell)
}

impl State {
    pub(super) fn dump(&self) -> Result<Dump> {
        let mut out = self.lifecycles()?;
        let mut add = |table: &str, row: Row| {
            out.add(table, row.into_iter().map(|(name, cell)| (name.to_owned(), cell)));
        };
        add("store", self.store_row());
        self.queues.values().for_each(|row| add("queues", queue(row)));
        for (name, ordered) in &self.topics {
            add("topics", vec![("name", text(name.as_str())), ("ordered", int(*ordered))]);
        }
        for (id, (name, at)) in &self.workers {
            let id = Cell::Id(id.as_uuid());
            add("workers", vec![("id", id), ("name", text(name)), ("introduced_at", time(*at))]);
        }
        self.jobs.values().for_each(|row| add("jobs", job(row)));
        for row in self.requests.values() {
            let mut cells = request(row);
            cells.push((
                "replay_of",
                maybe(self.replays.get(&row.job), |id| Cell::Id(id.as_uuid())),
            ));
            add("requests", cells);
        }
        self.waits.values().for_each(|row| add("waits", wait(row)));
        for (id, row) in &self.outcomes {
            let mut cells = vec![("job_id", Cell::Id(id.as_uuid()))];
            cells.extend(outcome(row));
            add("outcomes", cells);
        }
        self.keys.values().for_each(|row| add("keys", key(row)));
        for (name, (version, job)) in &self.subjects {
            let (version, job) = (int(*version), Cell::Id(job.as_uuid()));
            add("subjects", vec![("name", text(name)), ("version", version), ("job_id", job)]);
        }
        self.transitions.values().for_each(|row| add("transitions", transition(row)));
        for (key, last) in &self.sequences {
            add("sequences", vec![("key", text(key.as_str())), ("last", int(*last))]);
        }
        self.events.values().for_each(|row| add("events", event(row)));
        let letters = self.dead_letters.values();
        letters.for_each(|(row, first)| add("dead_letters", dead_letter(row, *first)));
        self.tombstones.values().for_each(|row| add("tombstones", tombstone(row)));
        self.records.values().for_each(|row| add("records", record(row)));
        self.documents.values().for_each(|row| add("documents", document(row)));
        self.blobs.iter().for_each(|(id, row)| add("blobs", blob(id, row)));
        self.tokens.values().for_each(|row| add("tokens", tokens(row)));
        self.turns.values().for_each(|row| add("turns", turn(row)));
        self.starts.values().for_each(|row| add("starts", starts(row)));
        self.audit.values().for_each(|row| add("audit", audit(row)));
        self.own_rows.iter().for_each(|row| add("lab_rows", vec![("text", text(row))]));
        Ok(out)
    }

    /// A dump of the lifecycles alone; kept, since they are most of every dump.
    fn lifecycles(&self) -> Result<Dump> {
        if let Some(shown) = self.shown_lifecycles.get() {
            return Ok(shown.clone());
        }
        let mut out = Dump::default();
        for it in self.lifecycles.iter() {
            let row = vec![
                ("name", text(it.name().as_str())),
                ("revision", int(it.revision())),
                ("hash", Cell::Bytes(it.hash()?.to_vec())),
                ("definition", Cell::Text(it.to_json()?)),
            ];
            out.add("lifecycles", row.into_iter().map(|(name, cell)| (name.to_owned(), cell)));
        }
        Ok(self.shown_lifecycles.get_or_init(|| out).clone())
    }

    fn store_row(&self) -> Row {
        let epoch = int(self.epoch.get());
        vec![("id", int(1)), ("epoch", epoch), ("max_leased", maybe(self.limit, int))]
    }
}

fn queue(row: &QueueRow) -> Row {
    vec![
        ("name", text(row.name.as_str())),
        ("paused", int(row.paused)),
        ("max_leased", maybe(row.limit, int)),
        ("lease_ms", maybe(row.lease, |lease| int(lease.as_millis()))),
        ("log", maybe(row.log, int)),
        ("keep_succeeded_s", int(row.keep_succeeded_s)),
        ("keep_failed_s", int(row.keep_failed_s)),
        ("keep_dead_s", int(row.keep_dead_s)),
        ("created_at", time(row.created_at)),
        ("partition_limit", maybe(row.partition_limit, int)),
        ("partition_rate", maybe(row.partition_rate, |it| hourly(it.rate()))),
        ("partition_burst", maybe(row.partition_rate, |it| int(it.burst()))),
    ]
}

fn hourly(rate: Rate) -> Cell {
    int(i64::try_from(rate.hourly()).unwrap_or(i64::MAX))
}

fn turn(row: &TurnRow) -> Row {
    let partition = row.partition.as_ref().map_or("", PartitionName::as_str);
    vec![
        ("queue", text(row.queue.as_str())),
        ("turn", int(row.turn)),
        ("partition", text(partition)),
    ]
}

fn starts(row: &StartsRow) -> Row {
    vec![
        ("queue", text(row.queue.as_str())),
        ("partition", text(row.partition.as_str())),
        ("level", int(row.level)),
        ("at", time(row.at)),
        ("open_at", time(row.open_at)),
        ("full_at", time(row.full_at)),
    ]
}

fn lease(lease: Option<Lease>) -> Row {
    vec![
        ("worker_id", maybe(lease, |it| Cell::Id(it.worker.as_uuid()))),
        ("lease_expires_at", maybe(lease, |it| time(it.expires_at))),
        ("heartbeat_at", maybe(lease, |it| time(it.heartbeat_at))),
        ("lease_ms", maybe(lease, |it| int(it.length.as_millis()))),
    ]
}

fn job(row: &JobRow) -> Row {
    let mut cells = vec![
        ("id", Cell::Id(row.id.as_uuid())),
        ("queue", text(row.queue.as_str())),
        ("kind", text(row.kind.as_str())),
        ("lifecycle", text(row.lifecycle.as_str())),
        ("revision", int(row.revision)),
        ("state", text(row.state.as_str())),
        ("stage", int(row.stage)),
        ("priority", int(row.priority)),
        ("run_at", time(row.run_at)),
        ("held", int(row.held)),
        ("again", int(row.again)),
        ("log", int(row.log)),
        ("attempts", int(row.attempts)),
        ("attempts_max", int(row.attempts_max)),
        ("executions", int(row.executions)),
        ("claim_version", int(row.version.get())),
        ("claim_id", maybe(row.claim, |id| Cell::Id(id.as_uuid()))),
        ("last_verdict", maybe(row.last_verdict, |kind| text(kind.as_str()))),
        ("step", int(row.step)),
        ("cancel_requested", int(row.cancel_requested)),
        ("transition_seq", int(row.transition_seq)),
        ("event_seq", int(row.event_seq)),
        ("created_at", time(row.created_at)),
        ("updated_at", time(row.updated_at)),
        ("started_at", maybe(row.started_at, time)),
        ("finished_at", maybe(row.finished_at, time)),
        ("partition", maybe(row.partition.as_ref(), |name| text(name.as_str()))),
    ];
    cells.extend(lease(row.lease));
    cells
}

fn request(row: &RequestRow) -> Row {
    let subject = row.subject.as_ref();
    vec![
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("payload", text(row.payload.as_str())),
        ("hash", Cell::Bytes(row.hash.as_bytes().to_vec())),
        ("scope", text(row.scope.as_str())),
        ("key", maybe(row.key.as_ref(), |key| text(key.as_str()))),
        ("subject", maybe(subject, |it| text(&it.name))),
        ("subject_version", maybe(subject, |it| int(it.version))),
        ("traceparent", maybe(row.traceparent.as_deref(), text)),
    ]
}

fn wait(row: &WaitRow) -> Row {
    vec![
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("parent_id", Cell::Id(row.parent.as_uuid())),
        ("on_failure", text(row.on_failure.as_str())),
        ("open", int(row.open)),
        ("outcome", maybe(row.outcome, |state| text(state.as_str()))),
    ]
}

fn outcome(outcome: &Outcome) -> Row {
    vec![
        ("checkpoint", maybe(outcome.row.checkpoint.as_ref(), |json| text(json.as_str()))),
        ("result", maybe(outcome.row.result.as_ref(), |json| text(json.as_str()))),
        ("failure", maybe(outcome.row.failure.as_ref(), |json| text(json.as_str()))),
        ("first_failure_at", maybe(outcome.first_failure_at, time)),
        ("last_failure_at", maybe(outcome.last_failure_at, time)),
    ]
}

fn key(row: &KeyRow) -> Row {
    vec![
        ("scope", text(row.scope.as_str())),
        ("key", text(row.key.as_str())),
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("hash", Cell::Bytes(row.hash.as_bytes().to_vec())),
        ("expires_at", maybe(row.expires_at, time)),
    ]
}

fn transition(row: &TransitionRow) -> Row {
    vec![
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("sequence", int(row.sequence)),
        ("at", time(row.at)),
        ("verb", text(row.verb.as_str())),
        ("from_status", text(&row.from)),
        ("to_status", text(&row.to)),
        ("claim_version", int(row.version.get())),
        ("worker_id", maybe(row.worker, |id| Cell::Id(id.as_uuid()))),
        ("actor", maybe(row.actor.as_ref(), |actor| text(actor.as_str()))),
    ]
}

fn event(row: &EventRow) -> Row {
    let mut cells = vec![
        ("id", Cell::Id(row.id.as_uuid())),
        ("topic", text(row.topic.as_str())),
        ("ordering", text(row.ordering.namespace())),
        ("order_key", maybe(row.ordering.key_text(), Cell::Text)),
        ("sequence", maybe(row.sequence, int)),
        ("payload", text(row.payload.as_str())),
        ("traceparent", maybe(row.traceparent.as_deref(), text)),
        ("state", text(row.state.as_str())),
        ("ordered", int(row.ordered)),
        ("run_at", time(row.run_at)),
        ("attempts", int(row.attempts)),
        ("attempts_max", int(row.attempts_max)),
        ("claim_version", int(row.version.get())),
        ("claim_id", maybe(row.claim, |id| Cell::Id(id.as_uuid()))),
        ("last_verdict", maybe(row.last_verdict, |kind| text(kind.as_str()))),
        ("failure", maybe(row.failure.as_ref(), |json| text(json.as_str()))),
        ("created_at", time(row.created_at)),
        ("updated_at", time(row.updated_at)),
        ("finished_at", maybe(row.finished_at, time)),
    ];
    cells.extend(lease(row.lease));
    cells
}

fn dead_letter(row: &DeadLetterRow, first: Timestamp) -> Row {
    vec![
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("claim_version", int(row.version.get())),
        ("queue", text(row.queue.as_str())),
        ("kind", text(row.kind.as_str())),
        ("stage", text(row.stage.as_str())),
        ("error_class", text(&row.error_class)),
        ("failure", text(row.failure.as_str())),
        ("attempts", int(row.attempts)),
        ("first_failure_at", time(first)),
        ("last_failure_at", time(row.last_failure_at)),
        ("state", text(row.state.as_str())),
        ("replay_job", row.replay_job.map_or(Cell::Null, |job| Cell::Id(job.as_uuid()))),
        ("changed_at", row.changed_at.map_or(Cell::Null, time)),
        ("changed_by", row.changed_by.as_ref().map_or(Cell::Null, |by| text(by.as_str()))),
        ("note", row.note.as_deref().map_or(Cell::Null, text)),
    ]
}

fn tombstone(row: &TombstoneRow) -> Row {
    let subject = row.subject.as_ref();
    vec![
        ("job_id", Cell::Id(row.job.as_uuid())),
        ("scope", text(row.scope.as_str())),
        ("key", maybe(row.key.as_ref(), |key| text(key.as_str()))),
        ("queue", text(row.queue.as_str())),
        ("subject", maybe(subject, |it| text(&it.name))),
        ("subject_version", maybe(subject, |it| int(it.version))),
        ("hash", Cell::Bytes(row.hash.as_bytes().to_vec())),
        ("outcome", text(row.outcome.as_str())),
        ("claim_version", int(row.version.get())),
        ("claim_id", maybe(row.claim, |id| Cell::Id(id.as_uuid()))),
        ("last_verdict", maybe(row.last_verdict, |kind| text(kind.as_str()))),
        ("pruned_at", time(row.pruned_at)),
    ]
}

fn record(row: &RecordRow) -> Row {
    vec![
        ("scope", text(row.scope.as_str())),
        ("key", text(row.key.as_str())),
        ("hash", Cell::Bytes(row.hash.as_bytes().to_vec())),
        ("response", maybe(row.response.as_ref(), |json| text(json.as_str()))),
        ("created_at", time(row.created_at)),
        ("expires_at", time(row.expires_at)),
    ]
}

fn document(row: &DocumentRow) -> Row {
    vec![
        ("namespace", text(row.id.namespace.as_str())),
        ("key", text(row.id.key.as_str())),
        ("version", int(row.version)),
        ("body", maybe(row.body.as_ref(), |json| text(json.as_str()))),
        ("created_at", time(row.created_at)),
        ("updated_at", time(row.updated_at)),
        ("expires_at", maybe(row.expires_at, time)),
    ]
}

fn blob(id: &RecordId, row: &Blob) -> Row {
    vec![
        ("namespace", text(id.namespace.as_str())),
        ("key", text(id.key.as_str())),
        ("bytes", Cell::Bytes(row.bytes.to_vec())),
        ("created_at", time(row.created_at)),
        ("expires_at", maybe(row.expires_at, time)),
    ]
}

fn tokens(row: &TokensRow) -> Row {
    vec![
        ("bucket", text(row.bucket.as_str())),
        ("level", int(row.level)),
        ("at", time(row.at)),
        ("full_at", time(row.full_at)),
    ]
}

fn audit(row: &AuditRow) -> Row {
    vec![
        ("id", Cell::Id(row.id)),
        ("at", time(row.at)),
        ("actor", text(row.actor.as_str())),
        ("action", text(&row.action)),
        ("target", text(&row.target)),
        ("detail", maybe(row.detail.as_deref(), text)),
    ]
}
