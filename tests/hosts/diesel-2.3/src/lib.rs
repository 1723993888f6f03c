//! Enqueues in a transaction of Diesel 2.3's own. Two functions to copy.

pub mod postgres {
    use diesel::pg::Pg;
    use diesel::sql_types::{BigInt, Binary, Nullable, Text, Uuid as SqlUuid};
    use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl, sql_query};
    use leasehold::{JobId, Statement, Value};
    use uuid::Uuid;

    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        outcome: String,
        #[diesel(sql_type = SqlUuid)]
        job: Uuid,
        #[diesel(sql_type = Nullable<Text>)]
        state: Option<String>,
    }

    /// Runs the statements of one job: outcome, job, state.
    pub fn enqueue(
        tx: &mut PgConnection,
        statements: &[Statement],
    ) -> QueryResult<(String, JobId, Option<String>)> {
        let mut answer = None;
        for statement in statements {
            let mut query = sql_query(&*statement.sql).into_boxed::<Pg>();
            for value in &statement.params {
                query = match value {
                    Value::Int(it) => query.bind::<Nullable<BigInt>, _>(it),
                    Value::Text(it) => query.bind::<Nullable<Text>, _>(it),
                    Value::Bytes(it) => query.bind::<Nullable<Binary>, _>(it),
                    Value::Uuid(it) => query.bind::<SqlUuid, _>(it),
                };
            }
            if statement.answers {
                answer = Some(query.get_result::<Row>(tx)?);
            } else {
                query.execute(tx)?;
            }
        }
        let row = answer.ok_or(diesel::result::Error::NotFound)?;
        Ok((row.outcome, JobId::from_uuid(row.job), row.state))
    }
}

pub mod sqlite {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use diesel::sqlite::Sqlite;
    use diesel::{QueryResult, QueryableByName, RunQueryDsl, SqliteConnection, sql_query};
    use leasehold::{JobId, Statement, Value};
    use uuid::Uuid;

    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        outcome: String,
        #[diesel(sql_type = Binary)]
        job: Vec<u8>,
        #[diesel(sql_type = Nullable<Text>)]
        state: Option<String>,
    }

    /// Runs the statements of one job: outcome, job, state. Call it in `immediate_transaction`.
    pub fn enqueue(
        tx: &mut SqliteConnection,
        statements: &[Statement],
    ) -> QueryResult<(String, JobId, Option<String>)> {
        let mut answer = None;
        for statement in statements {
            let mut query = sql_query(&*statement.sql).into_boxed::<Sqlite>();
            for value in &statement.params {
                query = match value {
                    Value::Int(it) => query.bind::<Nullable<BigInt>, _>(it),
                    Value::Text(it) => query.bind::<Nullable<Text>, _>(it),
                    Value::Bytes(it) => query.bind::<Nullable<Binary>, _>(it),
                    Value::Uuid(it) => query.bind::<Binary, _>(it.as_bytes().as_slice()),
                };
            }
            if statement.answers {
                answer = Some(query.get_result::<Row>(tx)?);
            } else {
                query.execute(tx)?;
            }
        }
        let row = answer.ok_or(diesel::result::Error::NotFound)?;
        let job = Uuid::from_slice(&row.job)
            .map_err(|error| diesel::result::Error::DeserializationError(Box::new(error)))?;
        Ok((row.outcome, JobId::from_uuid(job), row.state))
    }
}
