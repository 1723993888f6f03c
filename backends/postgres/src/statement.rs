//! Owns how a statement runs: from its file, in the schema's terms, on the transaction in hand, a
//! crash hook on both sides. Refuses to know what any statement means.

use leasehold_core::Result;
use tokio_postgres::{Client, Row, Transaction};

use crate::bind::Params;
use crate::error::{self, engine};
use crate::schema::Schema;

/// One statement, as its file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// Names the statement of a file under `sql/`.
macro_rules! sql {
    ($name:literal) => {
        $crate::statement::Sql { name: $name, text: include_str!(concat!("sql/", $name, ".sql")) }
    };
}
pub(crate) use sql;

/// Passes a crash hook; compiled away without the feature `failpoints`.
pub(crate) fn hook(_name: &'static str) {
    #[cfg(feature = "failpoints")]
    leasehold_core::failpoint::hit(_name);
}

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

    /// Passes a crash hook. Wake-ups pass none: they store nothing, and run whenever they like, so a
    /// count of them would be another one each time.
    fn hook(&self, name: &'static str) {
        match self.on {
            On::Plain(_) => {}
            On::Caller(_) | On::Own(_) | On::Pooled(_) => hook(name),
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
        self.hook(sql.name);
        let changed = match self.on {
            On::Caller(tx) => tx.execute_typed(&text, &params.typed()).await,
            On::Plain(client) => client.execute_typed(&text, &params.typed()).await,
            On::Pooled(client) => client.execute_typed(&text, &params.typed()).await,
            On::Own(tx) => match tx.prepare_typed_cached(&text, params.kinds()).await {
                Ok(prepared) => tx.execute(&prepared, &params.values()).await,
                Err(error) => Err(error),
            },
        };
        self.hook(sql.name);
        changed
    }

    /// Runs a statement to its last row.
    pub(crate) async fn rows<T>(
        &self,
        sql: Sql,
        params: Params,
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let text = self.schema.statement(sql.name, sql.text);
        self.hook(sql.name);
        let found = match self.on {
            On::Caller(tx) => tx.query_typed(&text, &params.typed()).await,
            On::Plain(client) => client.query_typed(&text, &params.typed()).await,
            On::Pooled(client) => client.query_typed(&text, &params.typed()).await,
            On::Own(tx) => match tx.prepare_typed_cached(&text, params.kinds()).await {
                Ok(prepared) => tx.query(&prepared, &params.values()).await,
                Err(error) => Err(error),
            },
        };
        self.hook(sql.name);
        found.map_err(engine)?.iter().map(read).collect()
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
        self.hook(name);
        let done = match self.on {
            On::Caller(tx) => tx.batch_execute(text).await,
            On::Plain(client) => client.batch_execute(text).await,
            On::Own(client) | On::Pooled(client) => client.batch_execute(text).await,
        };
        self.hook(name);
        done.map_err(engine)
    }
}

/// Commits a transaction of the driver's own sort.
pub(crate) async fn commit(tx: deadpool_postgres::Transaction<'_>) -> Result<()> {
    hook("commit");
    let done = tx.commit().await;
    hook("commit");
    done.map_err(error::commit)
}
