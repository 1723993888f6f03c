//! The story of every host library, on SeaORM 2 and both engines.

use leasehold::{Statement, postgres, sqlite};
use leasehold_host_sea_orm_2::enqueue;
use leasehold_host_story::{Answer, End, Host, file, play, server, store_url};
use sea_orm::{
    ConnectionTrait, Database, DatabaseConnection, DbErr, SqliteTransactionMode, Statement as Text,
    TransactionOptions, TransactionTrait,
};

/// One program for both engines; `orders` is the name of the user's own table.
struct OnSeaOrm {
    connection: DatabaseConnection,
    orders: &'static str,
}

impl OnSeaOrm {
    async fn connect(url: &str, orders: &'static str) -> Self {
        let connection = Database::connect(url).await.expect("a connection");
        let create = format!("create table {orders} (number bigint primary key)");
        connection.execute_unprepared(&create).await.expect("created");
        Self { connection, orders }
    }

    async fn one(&self, number: i64, statements: &[Statement], end: End) -> Result<Answer, DbErr> {
        // PostgreSQL has no such mode, and nothing is done there.
        let immediate = Some(SqliteTransactionMode::Immediate);
        let options =
            TransactionOptions { sqlite_transaction_mode: immediate, ..Default::default() };
        let tx = self.connection.begin_with_options(options).await?;
        let own = format!("insert into {} (number) values ($1)", self.orders);
        let own = Text::from_sql_and_values(tx.get_database_backend(), own, [number.into()]);
        tx.execute_raw(own.clone()).await?;
        let (outcome, job, state) = enqueue(&tx, statements).await?;
        match end {
            End::Commit => tx.commit().await?,
            End::RollBack => tx.rollback().await?,
            End::Fail => _ = tx.execute_raw(own).await?,
        }
        Ok(Answer { outcome, job, state })
    }
}

impl Host for OnSeaOrm {
    async fn order(&mut self, number: i64, all: &[Statement], end: End) -> Result<Answer, String> {
        self.one(number, all, end).await.map_err(|error| error.to_string())
    }

    async fn orders(&mut self) -> Vec<i64> {
        let all = format!("select number from {} order by number", self.orders);
        let all = Text::from_string(self.connection.get_database_backend(), all);
        let rows = self.connection.query_all_raw(all).await.expect("orders");
        rows.iter().map(|row| row.try_get("", "number").expect("a number")).collect()
    }
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_postgres_transaction() {
    let store = postgres::open(&store_url("sea_orm_2")).await.expect("a store");
    let mut host = OnSeaOrm::connect(&server(), "sea_orm_2_orders").await;
    play(&mut host, &store, &|job| store.enqueue_sql(job)).await;
}

/// Proves: TX-8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_sqlite_transaction() {
    let path = file("sea-orm-2").display().to_string();
    let store = sqlite::open(&path).await.expect("a store");
    let mut host = OnSeaOrm::connect(&format!("sqlite://{path}"), "orders").await;
    let engine = host.connection.get_database_backend();
    let version = Text::from_string(engine, "select sqlite_version() as version");
    let row = host.connection.query_one_raw(version).await.expect("read").expect("a row");
    let version: String = row.try_get("", "version").expect("a version");
    assert_eq!(version, sqlite::rusqlite::version(), "one copy of SQLite in the program");
    play(&mut host, &store, &|job| store.enqueue_sql(job)).await;
}
