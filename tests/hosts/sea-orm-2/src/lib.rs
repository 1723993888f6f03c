//! Enqueues in a transaction of SeaORM 2's own, on either engine. One function to copy.

use leasehold::{JobId, Statement, Value};
use sea_orm::sea_query::prelude::Uuid;
use sea_orm::{ConnectionTrait, DbErr, Statement as Text, Value as Bound};

/// Runs the statements of one job: outcome, job, state.
///
/// On SQLite begin with `TransactionOptions` whose `sqlite_transaction_mode` is `Immediate`.
pub async fn enqueue(
    tx: &impl ConnectionTrait,
    statements: &[Statement],
) -> Result<(String, JobId, Option<String>), DbErr> {
    let engine = tx.get_database_backend();
    let mut answer = None;
    for statement in statements {
        let values = statement.params.iter().map(|value| match value {
            Value::Int(it) => Bound::BigInt(*it),
            Value::Text(it) => Bound::String(it.clone()),
            Value::Bytes(it) => Bound::Bytes(it.clone()),
            Value::Uuid(it) => Bound::Uuid(Some(*it)),
        });
        let text = Text::from_sql_and_values(engine, &*statement.sql, values);
        if statement.answers {
            answer = tx.query_one_raw(text).await?;
        } else {
            tx.execute_raw(text).await?;
        }
    }
    let row = answer.ok_or_else(|| DbErr::RecordNotFound("the answer".to_owned()))?;
    let job = JobId::from_uuid(row.try_get::<Uuid>("", "job")?);
    Ok((row.try_get("", "outcome")?, job, row.try_get("", "state")?))
}
