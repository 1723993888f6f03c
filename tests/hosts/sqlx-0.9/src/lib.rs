//! Enqueues in a transaction of sqlx 0.9's own. Two functions to copy.

pub mod postgres {
    use leasehold::{JobId, Statement, Value};
    use sqlx::postgres::PgRow;
    use sqlx::types::Uuid;
    use sqlx::{PgConnection, Row};

    /// Runs the statements of one job: outcome, job, state.
    pub async fn enqueue(
        tx: &mut PgConnection,
        statements: &[Statement],
    ) -> sqlx::Result<(String, JobId, Option<String>)> {
        let mut answer: Option<PgRow> = None;
        for statement in statements {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.sql.clone()));
            for value in &statement.params {
                query = match value {
                    Value::Int(it) => query.bind(it),
                    Value::Text(it) => query.bind(it),
                    Value::Bytes(it) => query.bind(it),
                    Value::Uuid(it) => query.bind(it),
                };
            }
            if statement.answers {
                answer = Some(query.fetch_one(&mut *tx).await?);
            } else {
                query.execute(&mut *tx).await?;
            }
        }
        let row = answer.ok_or(sqlx::Error::RowNotFound)?;
        let job = JobId::from_uuid(row.try_get::<Uuid, _>("job")?);
        Ok((row.try_get("outcome")?, job, row.try_get("state")?))
    }
}

pub mod sqlite {
    use leasehold::{JobId, Statement, Value};
    use sqlx::sqlite::SqliteRow;
    use sqlx::types::Uuid;
    use sqlx::{Row, SqliteConnection};

    /// Runs the statements of one job: outcome, job, state. Begin with `begin immediate`.
    pub async fn enqueue(
        tx: &mut SqliteConnection,
        statements: &[Statement],
    ) -> sqlx::Result<(String, JobId, Option<String>)> {
        let mut answer: Option<SqliteRow> = None;
        for statement in statements {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.sql.clone()));
            for value in &statement.params {
                query = match value {
                    Value::Int(it) => query.bind(it),
                    Value::Text(it) => query.bind(it),
                    Value::Bytes(it) => query.bind(it),
                    Value::Uuid(it) => query.bind(it),
                };
            }
            if statement.answers {
                answer = Some(query.fetch_one(&mut *tx).await?);
            } else {
                query.execute(&mut *tx).await?;
            }
        }
        let row = answer.ok_or(sqlx::Error::RowNotFound)?;
        let job = JobId::from_uuid(row.try_get::<Uuid, _>("job")?);
        Ok((row.try_get("outcome")?, job, row.try_get("state")?))
    }
}
