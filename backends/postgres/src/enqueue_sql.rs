//! Owns an enqueue as statements for callers with another driver. Refuses to run them: what they come
//! to is decided by the database inside the caller's transaction.

use std::sync::Arc;

use leasehold_core::row::QueueRow;
use leasehold_core::{NewJob, Result, Statement, Timestamp, Value};

use crate::marks;
use crate::statement::{Sql, sql};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Gives the statements that enqueue a job in a transaction of any driver's on the same database.
    ///
    /// How they are run and what they answer: [`Statement`]. Under `repeatable read` or `serializable`
    /// a key taken meanwhile is an error of class 40, upon which the caller's transaction begins again.
    ///
    /// # Errors
    /// `Invalid` naming the field and the limit, and for a rerun.
    pub fn enqueue_sql(&self, job: &NewJob) -> Result<Vec<Statement>> {
        let shared = self.shared();
        job.check_as_statements(&shared.limits)?;
        let mut values = vec![Value::Text(Some(marks::lock_name(self.schema())))];
        values.extend(decide(job, shared.limits.id_skew_max.map(|it| it.as_millis())));
        values.extend(row(job));
        let queue = QueueRow::new(job.queue.clone(), Timestamp::MIN);
        values.extend([
            Value::duration(job.key_ttl),
            Value::int(queue.keep_succeeded_s),
            Value::int(queue.keep_failed_s),
            Value::int(queue.keep_dead_s),
            Value::Int(shared.manual_now().map(Timestamp::as_micros)),
            Value::maybe_text(job.partition.as_ref().map(|name| name.as_str())),
        ]);
        Ok(vec![Statement::new(self.text(sql!("enqueue")), values, true)])
    }

    fn text(&self, sql: Sql) -> Arc<str> {
        self.schema().statement(sql.name, sql.text)
    }
}

fn decide(job: &NewJob, skew_ms: Option<u128>) -> Vec<Value> {
    vec![
        Value::Uuid(job.id.as_uuid()),
        Value::bytes(job.request_hash().as_bytes()),
        Value::text(job.scope.as_str()),
        Value::maybe_text(job.key.as_ref().map(|key| key.as_str())),
        Value::text(job.lifecycle.as_str()),
        Value::Int(Some(job.id.unix_ms().unwrap_or(i64::MIN / 4))),
        Value::Int(skew_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX))),
    ]
}

fn row(job: &NewJob) -> Vec<Value> {
    let subject = job.subject.as_ref();
    let [delay, at] = Value::run_at(job);
    vec![
        Value::text(job.queue.as_str()),
        Value::text(job.kind.as_str()),
        Value::int(job.priority),
        delay,
        at,
        Value::Int(job.max_attempts.map(i64::from)),
        Value::text(job.payload.as_str()),
        Value::maybe_text(subject.map(|subject| subject.name.as_str())),
        Value::Int(subject.map(|subject| subject.version)),
        Value::maybe_text(job.traceparent.as_deref()),
    ]
}
