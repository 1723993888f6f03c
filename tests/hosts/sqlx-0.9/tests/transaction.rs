//! The story of every host library, on sqlx 0.9 and both engines.

use leasehold::{Statement, postgres, sqlite};
use leasehold_host_sqlx_09 as enqueues;
use leasehold_host_story::{Answer, End, Host, file, play, server, store_url};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, PgPool, SqlitePool};

struct OnPostgres(PgPool);
struct OnSqlite(SqlitePool);

fn answer((outcome, job, state): (String, leasehold::JobId, Option<String>)) -> Answer {
    Answer { outcome, job, state }
}

impl OnPostgres {
    async fn one(&self, number: i64, statements: &[Statement], end: End) -> sqlx::Result<Answer> {
        let mut tx = self.0.begin().await?;
        let own = "insert into sqlx_09_orders (number) values ($1)";
        sqlx::query(own).bind(number).execute(&mut *tx).await?;
        let told = enqueues::postgres::enqueue(&mut tx, statements).await?;
        match end {
            End::Commit => tx.commit().await?,
            End::RollBack => tx.rollback().await?,
            End::Fail => _ = sqlx::query(own).bind(number).execute(&mut *tx).await?,
        }
        Ok(answer(told))
    }
}

impl Host for OnPostgres {
    async fn order(&mut self, number: i64, all: &[Statement], end: End) -> Result<Answer, String> {
        self.one(number, all, end).await.map_err(|error| error.to_string())
    }

    async fn orders(&mut self) -> Vec<i64> {
        let all = sqlx::query_scalar("select number from sqlx_09_orders order by number");
        all.fetch_all(&self.0).await.expect("orders")
    }
}

impl OnSqlite {
    async fn one(&self, number: i64, statements: &[Statement], end: End) -> sqlx::Result<Answer> {
        let mut connection = self.0.acquire().await?;
        let mut tx = connection.begin_with("begin immediate").await?;
        let own = "insert into orders (number) values (?1)";
        sqlx::query(own).bind(number).execute(&mut *tx).await?;
        let told = enqueues::sqlite::enqueue(&mut tx, statements).await?;
        match end {
            End::Commit => tx.commit().await?,
            End::RollBack => tx.rollback().await?,
            End::Fail => _ = sqlx::query(own).bind(number).execute(&mut *tx).await?,
        }
        Ok(answer(told))
    }
}

impl Host for OnSqlite {
    async fn order(&mut self, number: i64, all: &[Statement], end: End) -> Result<Answer, String> {
        self.one(number, all, end).await.map_err(|error| error.to_string())
    }

    async fn orders(&mut self) -> Vec<i64> {
        let all = sqlx::query_scalar("select number from orders order by number");
        all.fetch_all(&self.0).await.expect("orders")
    }
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_postgres_transaction() {
    let store = postgres::open(&store_url("sqlx_09")).await.expect("a store");
    let pool = PgPool::connect(&server()).await.expect("a pool");
    let create = "create table sqlx_09_orders (number bigint primary key)";
    sqlx::query(create).execute(&pool).await.expect("created");
    play(&mut OnPostgres(pool), &store, &|job| store.enqueue_sql(job)).await;
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_sqlite_transaction() {
    let path = file("sqlx-09");
    let store = sqlite::open(&path.display().to_string()).await.expect("a store");
    // sqlx waits five seconds for a lock unless told otherwise.
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await;
    let pool = pool.expect("a pool");
    let create = "create table orders (number integer primary key)";
    sqlx::query(create).execute(&pool).await.expect("created");
    let version: String =
        sqlx::query_scalar("select sqlite_version()").fetch_one(&pool).await.expect("a version");
    assert_eq!(version, sqlite::rusqlite::version(), "one copy of SQLite in the program");
    play(&mut OnSqlite(pool), &store, &|job| store.enqueue_sql(job)).await;
}
