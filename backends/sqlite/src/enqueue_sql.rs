//! Owns an enqueue as statements for callers with another driver. Refuses to run them: what they come
//! to is decided by the database inside the caller's transaction.

use leasehold_core::row::QueueRow;
use leasehold_core::{NewJob, Result, Statement, Timestamp, Value};

use crate::statement::{Sql, sql};
use crate::store::SqliteStore;
use crate::write::is_inline;

impl SqliteStore {
    /// Gives the statements that enqueue a job in a transaction of any driver's on the same file.
    ///
    /// How they are run and what they answer: [`Statement`]. The first one takes the write lock; begin
    /// with `BEGIN IMMEDIATE`, or a transaction that has read before may fail with "database is locked"
    /// and must then begin again. The program must hold one copy of SQLite only.
    ///
    /// ```
    /// use leasehold_core::{JobKind, Json, NewJob, Value};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = leasehold_sqlite::open(":memory:").await?;
    /// let job = NewJob::new(JobKind::new("invoice")?, Json::parse("{}")?);
    /// for statement in store.enqueue_sql(&job)? {
    ///     // Bind each of `statement.params`, then fetch one row if it answers, else execute.
    ///     println!("{} {} {:?}", statement.answers, statement.sql, statement.params);
    /// }
    /// # Ok::<(), leasehold_core::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the field and the limit, and for a rerun.
    pub fn enqueue_sql(&self, job: &NewJob) -> Result<Vec<Statement>> {
        let shared = self.shared();
        job.check_as_statements(&shared.limits)?;
        let now = Value::Int(shared.clock.manual_now().map(Timestamp::as_micros));
        let id = Value::bytes(job.id.as_bytes());
        let skew = shared.limits.id_skew_max.map(|it| it.as_millis());
        let decide = vec![
            id.clone(),
            Value::bytes(job.request_hash().as_bytes()),
            Value::text(job.scope.as_str()),
            Value::maybe_text(job.key.as_ref().map(|key| key.as_str())),
            Value::text(job.lifecycle.as_str()),
            Value::Int(Some(job.id.unix_ms().unwrap_or(i64::MIN / 4))),
            Value::Int(skew.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX))),
        ];
        let mut key = decide.clone();
        key.push(Value::duration(job.key_ttl));
        let mut statements = vec![
            statement(sql!("enqueue_clock"), vec![now], false),
            statement(sql!("enqueue_answer"), decide.clone(), true),
            statement(sql!("enqueue_key"), key, false),
            statement(sql!("enqueue_job"), row(job, decide), false),
            statement(sql!("enqueue_queue"), queue(job, id.clone()), false),
        ];
        if !is_inline(&job.payload) {
            let payload = vec![id, Value::text(job.payload.as_str())];
            statements.push(statement(sql!("enqueue_payload"), payload, false));
        }
        Ok(statements)
    }
}

fn statement(sql: Sql, params: Vec<Value>, answers: bool) -> Statement {
    Statement::new(sql.sent(), params, answers)
}

fn row(job: &NewJob, mut values: Vec<Value>) -> Vec<Value> {
    values.extend([
        Value::text(job.queue.as_str()),
        Value::text(job.kind.as_str()),
        Value::int(job.priority),
    ]);
    values.extend(Value::run_at(job));
    let (payload, subject) = (Some(job.payload.as_str()), job.subject.as_ref());
    values.extend([
        Value::Int(job.max_attempts.map(i64::from)),
        Value::maybe_text(payload.filter(|_| is_inline(&job.payload))),
        Value::maybe_text(subject.map(|subject| subject.name.as_str())),
        Value::Int(subject.map(|subject| subject.version)),
        Value::maybe_text(job.traceparent.as_deref()),
        Value::maybe_text(job.partition.as_ref().map(|name| name.as_str())),
    ]);
    values
}

fn queue(job: &NewJob, id: Value) -> Vec<Value> {
    let row = QueueRow::new(job.queue.clone(), Timestamp::MIN);
    let name = Value::text(job.queue.as_str());
    vec![
        id,
        name,
        Value::int(row.keep_succeeded_s),
        Value::int(row.keep_failed_s),
        Value::int(row.keep_dead_s),
    ]
}
