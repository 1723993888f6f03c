//! Owns how a statement runs: from its file, in the schema's terms, on the transaction in hand, a
//! step of a test's on both sides. Refuses to know what any statement means.

use leasehold_core::Result;
use tokio_postgres::{Client, Row, Transaction};

use crate::bind::Params;
use crate::error::{self, engine};
use crate::schema::{Schema, sent};
use crate::step::{self, Step};

/// One statement, as its file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// Names the statement of a file under `sql/`.
macro_rules! sql {
    ($name:literal) => {
        $crate::statement::Sql {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql")),
        }
    };
}
pub(crate) use sql;

/// What a statement runs on.
#[derive(Clone, Copy)]
enum On<'a> {
    /// A caller's transaction, which may be behind any pooler: nothing is left prepared.
    Caller(&'a Transaction<'a>),
    /// A connection of the store's inside a transaction, statements prepared once.
    Own(&'a deadpool_postgres::Client),
    /// The same behind a pooler: nothing is left prepared.
    Pooled(&'a deadpool_postgres::Client),
    /// A connection outside any transaction, for wake-ups.
    Plain(&'a Client),
}

/// A connection in the hand of a verb, and the schema it speaks of.
#[derive(Clone, Copy)]
pub(crate) struct Db<'a> {
    on: On<'a>,
    pub(crate) schema: &'a Schema,
}

impl std::fmt::Debug for Db<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("schema", &self.schema.name()).finish_non_exhaustive()
    }
}

impl<'a> Db<'a> {
    /// A caller's transaction.
    pub(crate) fn caller(tx: &'a Transaction<'a>, schema: &'a Schema) -> Self {
        Self { on: On::Caller(tx), schema }
    }

    /// A connection of the store's inside a transaction; `prepares` unless a pooler may stand between.
    pub(crate) fn own(
        client: &'a deadpool_postgres::Client,
        schema: &'a Schema,
        prepares: bool,
    ) -> Self {
        Self { on: if prepares { On::Own(client) } else { On::Pooled(client) }, schema }
    }

    /// A connection outside any transaction.
    pub(crate) fn plain(client: &'a Client, schema: &'a Schema) -> Self {
        Self { on: On::Plain(client), schema }
    }

    /// Begins a step for tests, which may let it fail. Wake-ups are none: they store nothing, and run
    /// whenever they like, so a count of them would be another one each time.
    async fn step(&self, name: &'static str) -> Result<Option<Step>, tokio_postgres::Error> {
        if matches!(self.on, On::Plain(_)) {
            return Ok(None);
        }
        let step = Step::begin(name).await;
        if let Some(text) = step::fault() {
            self.send(&text).await?;
        }
        Ok(Some(step))
    }

    async fn send(&self, text: &str) -> Result<(), tokio_postgres::Error> {
        match self.on {
            On::Caller(tx) => tx.batch_execute(text).await,
            On::Plain(client) => client.batch_execute(text).await,
            On::Own(client) | On::Pooled(client) => client.batch_execute(text).await,
        }
    }

    /// Prepares a statement, so that it is on the wire as soon as it is first polled.
    pub(crate) async fn prepare(&self, sql: Sql, params: &Params) -> Result<()> {
        let On::Own(client) = self.on else { return Ok(()) };
        let text = self.schema.statement(sql.name, sql.text);
        client.prepare_typed_cached(&text, params.kinds()).await.map(|_| ()).map_err(engine)
    }

    /// Runs a statement that gives no rows; how many it changed.
    pub(crate) async fn execute(&self, sql: Sql, params: Params) -> Result<u64> {
        self.changed(sql, params).await.map_err(engine)
    }

    /// Runs an insert of rows that are new unless another transaction came first; only in a transaction
    /// of the store's own, which its error ends.
    pub(crate) async fn insert(&self, sql: Sql, params: Params) -> Result<()> {
        self.changed(sql, params).await.map(|_| ()).map_err(error::insert)
    }

    async fn changed(&self, sql: Sql, params: Params) -> Result<u64, tokio_postgres::Error> {
        let text = self.schema.statement(sql.name, sql.text);
        let step = self.step(sql.name).await?;
        let changed = match self.on {
            On::Caller(tx) => tx.execute_typed(&text, &params.typed()).await,
            On::Plain(client) => client.execute_typed(&text, &params.typed()).await,
            On::Pooled(client) => client.execute_typed(&text, &params.typed()).await,
            On::Own(tx) => match tx.prepare_typed_cached(&text, params.kinds()).await {
                Ok(prepared) => tx.execute(&prepared, &params.values()).await,
                Err(error) => Err(error),
            },
        };
        end(step);
        changed
    }

    /// Runs a statement to its last row.
    pub(crate) async fn rows<T>(
        &self,
        sql: Sql,
        params: Params,
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let step = self.step(sql.name).await.map_err(engine)?;
        let found = self.query(sql, &params).await;
        end(step);
        found.map_err(engine)?.iter().map(read).collect()
    }

    /// Runs a statement that is a transaction by itself, to its last row: its reply is the commit's.
    pub(crate) async fn alone<T>(
        &self,
        sql: Sql,
        params: Params,
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.prepare(sql, &params).await?;
        let step = Step::begin(sql.name).await;
        let found = match step::fault_of_alone() {
            None => self.query(sql, &params).await,
            Some((is_done, text)) => {
                if is_done {
                    let _unheard = self.query(sql, &params).await;
                }
                self.send(&text).await.map(|()| Vec::new())
            }
        };
        step.end();
        found.map_err(error::alone)?.iter().map(read).collect()
    }

    async fn query(&self, sql: Sql, params: &Params) -> Result<Vec<Row>, tokio_postgres::Error> {
        let text = self.schema.statement(sql.name, sql.text);
        match self.on {
            On::Caller(tx) => tx.query_typed(&text, &params.typed()).await,
            On::Plain(client) => client.query_typed(&text, &params.typed()).await,
            On::Pooled(client) => client.query_typed(&text, &params.typed()).await,
            On::Own(tx) => match tx.prepare_typed_cached(&text, params.kinds()).await {
                Ok(prepared) => tx.query(&prepared, &params.values()).await,
                Err(error) => Err(error),
            },
        }
    }

    /// Runs a statement of at most one row.
    pub(crate) async fn row<T>(
        &self,
        sql: Sql,
        params: Params,
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, params, read).await?.into_iter().next())
    }

    /// Runs text that no file holds, for dumps.
    #[cfg(feature = "lab")]
    pub(crate) async fn any(&self, text: &str) -> Result<Vec<Row>> {
        let found = match self.on {
            On::Caller(tx) => tx.query_typed(text, &[]).await,
            On::Plain(client) => client.query_typed(text, &[]).await,
            On::Own(client) | On::Pooled(client) => client.query_typed(text, &[]).await,
        };
        found.map_err(engine)
    }

    /// Runs plain text: savepoints, settings, a whole migration.
    pub(crate) async fn batch(&self, name: &'static str, text: &str) -> Result<()> {
        let step = self.step(name).await.map_err(engine)?;
        let done = self.send(sent(name, text)).await;
        end(step);
        done.map_err(engine)
    }
}

fn end(step: Option<Step>) {
    step.into_iter().for_each(Step::end);
}

/// Commits a transaction of the driver's own sort.
pub(crate) async fn commit(tx: deadpool_postgres::Transaction<'_>) -> Result<()> {
    let step = Step::begin("commit").await;
    let done = match step::fault_of_commit() {
        Some(text) => tx.batch_execute(&text).await,
        None => tx.commit().await,
    };
    step.end();
    done.map_err(error::commit)
}
