//! The story of every host library, on Diesel 2.3 and both engines.

use diesel::connection::SimpleConnection;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Text};
use diesel::{
    Connection, PgConnection, QueryResult, QueryableByName, RunQueryDsl, SqliteConnection,
    sql_query,
};
use leasehold::{JobId, Statement, postgres, sqlite};
use leasehold_host_diesel_23 as enqueues;
use leasehold_host_story::{Answer, End, Host, file, play, server, store_url};

struct OnPostgres(PgConnection);
struct OnSqlite(SqliteConnection);

#[derive(QueryableByName)]
struct Order {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Diesel rolls back where the closure gives an error; this one carries the answer out.
enum Ended {
    RolledBack((String, JobId, Option<String>)),
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn outcome(ended: Result<(String, JobId, Option<String>), Ended>) -> Result<Answer, String> {
    match ended {
        Ok((outcome, job, state)) | Err(Ended::RolledBack((outcome, job, state))) => {
            Ok(Answer { outcome, job, state })
        }
        Err(Ended::Failed(error)) => Err(error.to_string()),
    }
}

impl Host for OnPostgres {
    async fn order(&mut self, number: i64, all: &[Statement], end: End) -> Result<Answer, String> {
        let own = |tx: &mut PgConnection| -> QueryResult<usize> {
            let text = "insert into diesel_23_orders (number) values ($1)";
            sql_query(text).bind::<BigInt, _>(number).execute(tx)
        };
        outcome(self.0.transaction(|tx| {
            own(tx)?;
            let told = enqueues::postgres::enqueue(tx, all)?;
            match end {
                End::Commit => Ok(told),
                End::RollBack => Err(Ended::RolledBack(told)),
                End::Fail => own(tx).map(|_| told).map_err(Ended::Failed),
            }
        }))
    }

    async fn orders(&mut self) -> Vec<i64> {
        let all = sql_query("select number from diesel_23_orders order by number");
        let rows = all.load::<Order>(&mut self.0).expect("orders");
        rows.iter().map(|row| row.number).collect()
    }
}

impl Host for OnSqlite {
    async fn order(&mut self, number: i64, all: &[Statement], end: End) -> Result<Answer, String> {
        let own = |tx: &mut SqliteConnection| -> QueryResult<usize> {
            let text = "insert into orders (number) values (?1)";
            sql_query(text).bind::<BigInt, _>(number).execute(tx)
        };
        outcome(self.0.immediate_transaction(|tx| {
            own(tx)?;
            let told = enqueues::sqlite::enqueue(tx, all)?;
            match end {
                End::Commit => Ok(told),
                End::RollBack => Err(Ended::RolledBack(told)),
                End::Fail => own(tx).map(|_| told).map_err(Ended::Failed),
            }
        }))
    }

    async fn orders(&mut self) -> Vec<i64> {
        let all = sql_query("select number from orders order by number");
        let rows = all.load::<Order>(&mut self.0).expect("orders");
        rows.iter().map(|row| row.number).collect()
    }
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_postgres_transaction() {
    let store = postgres::open(&store_url("diesel_23")).await.expect("a store");
    let mut connection = PgConnection::establish(&server()).expect("a connection");
    let create = "create table diesel_23_orders (number bigint primary key)";
    connection.batch_execute(create).expect("created");
    play(&mut OnPostgres(connection), &store, &|job| store.enqueue_sql(job)).await;
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_sqlite_transaction() {
    let path = file("diesel-23").display().to_string();
    let store = sqlite::open(&path).await.expect("a store");
    let mut connection = SqliteConnection::establish(&path).expect("a connection");
    connection.batch_execute("pragma busy_timeout = 5000").expect("a longer wait");
    let create = "create table orders (number integer primary key)";
    connection.batch_execute(create).expect("created");
    let version = sql_query("select sqlite_version() as version");
    let version: Version = version.get_result(&mut connection).expect("a version");
    assert_eq!(version.version, sqlite::rusqlite::version(), "one copy of SQLite in the program");
    play(&mut OnSqlite(connection), &store, &|job| store.enqueue_sql(job)).await;
}
