//! Owns what tests need of this engine: a store in a fresh schema, on a manual clock where one is
//! given, dumps of every table, and scripts on a caller's connection. Compiled only with `lab`.

use std::time::SystemTime;

use async_trait::async_trait;
use futures_util::StreamExt;
use leasehold_core::lab::{
    Cell, Dump, Ending, LabStore, ManualClock, RecordReply, RecordStep, Reply, Step, TABLES,
};
use leasehold_core::rules::Ids;
use leasehold_core::{Limits, QueueName, Result, Timestamp};
use std::sync::Arc;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

use crate::bind::Params;
use crate::error::{corrupt, engine, named};
use crate::joined::Joined;
use crate::open::Target;
use crate::schema::Schema;
use crate::statement::{Db, sql};
use crate::step;
use crate::store::{Origin, PostgresStore, snapshot};

/// The columns of `jobs` that a dump shows as the rows of `requests`.
const REQUEST: [&str; 8] =
    ["payload", "hash", "scope", "key", "subject", "subject_version", "traceparent", "replay_of"];

/// The columns of `jobs` that no other engine has.
const OWN: [&str; 1] = ["waited"];

impl PostgresStore {
    /// Opens a store under test in a schema that is made anew: its ids are numbered, ids may lie at
    /// any time, and its clock is manual where a start is given, else the server's.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab(url: &str, schema: &str, start: Option<Timestamp>) -> Result<Self> {
        Self::lab_end(url, schema).await?;
        Self::lab_again(url, schema, start).await
    }

    /// Removes a schema of stores under test, with all that it holds.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab_end(url: &str, schema: &str) -> Result<()> {
        let quoted = Schema::new(schema)?;
        let drop = format!("drop schema if exists {} cascade", quoted.quoted());
        Self::lab_alone(url, schema, &drop).await
    }

    /// Runs a text on a connection of its own.
    pub(crate) async fn lab_alone(url: &str, schema: &str, text: &str) -> Result<()> {
        let (client, mut messages) = lab_target(url, schema)?.connect().await?;
        tokio::select! {
            done = client.batch_execute(text) => done.map_err(engine),
            () = async { while let Some(Ok(_)) = messages.next().await {} } => {
                Err(corrupt("the connection ended"))
            }
        }
    }

    /// Opens one more store under test in a schema as it is.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab_again(url: &str, schema: &str, start: Option<Timestamp>) -> Result<Self> {
        Self::lab_from(url, schema, start, 1).await
    }

    /// Opens one more store under test in a schema as it is, whose own ids begin at a number.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab_from(
        url: &str,
        schema: &str,
        start: Option<Timestamp>,
        first_id: u64,
    ) -> Result<Self> {
        let origin = Origin::lab(first_id, start);
        let store = Self::start(lab_target(url, schema)?, origin).await?;
        let mut client = store.reader().await?;
        let begun = client.transaction().await.map_err(engine)?;
        store.db(&begun).execute(sql!("lab_table"), Params::new()).await?;
        begun.commit().await.map_err(engine)?;
        drop(client);
        Ok(store)
    }

    /// Raises a queue's low-water marks now, which the store does in passing.
    ///
    /// # Errors
    /// `Busy` while another transaction is adding claimable rows.
    pub async fn raise_low_water(&self, queue: &QueueName) -> Result<()> {
        self.raise_marks(queue).await
    }

    /// Lets go of every connection that is not in use, as one that is dead shows itself only when it is used.
    pub fn forget_connections(&self) {
        self.pools().forget();
    }

    async fn play_beside(
        &self,
        client: &mut tokio_postgres::Client,
        script: &[Step],
        ending: Ending,
        isolation: IsolationLevel,
    ) -> Result<Vec<Reply>> {
        let begun = step::Step::begin("begin").await;
        let tx = client.build_transaction().isolation_level(isolation).start().await;
        begun.end();
        let tx = tx.map_err(engine)?;
        let replies = self.play_steps(&tx, script).await?;
        let ended = step::Step::begin("commit").await;
        match ending {
            Ending::Commit => tx.commit().await.map_err(engine)?,
            Ending::RollBack => tx.rollback().await.map_err(engine)?,
            Ending::Drop => drop(tx),
        }
        ended.end();
        Ok(replies)
    }

    /// As [`LabStore::play`], in a transaction of a given isolation.
    ///
    /// # Errors
    /// As there.
    pub async fn play_at(
        &self,
        script: Vec<Step>,
        ending: Ending,
        isolation: IsolationLevel,
    ) -> Result<Vec<Reply>> {
        let (mut client, mut messages) = self.target().connect().await?;
        // Without its connection the client answers each call by itself, so the script comes to its end.
        let drive = async move {
            while let Some(Ok(_)) = messages.next().await {}
            drop(messages);
            std::future::pending::<()>().await;
        };
        let play = async {
            let replies = self.play_beside(&mut client, &script, ending, isolation).await;
            // What a drop began ends before anybody looks.
            let settled = client.batch_execute("").await.map_err(engine);
            replies.and_then(|replies| settled.map(|()| replies))
        };
        let played = tokio::select! {
            played = play => played,
            () = drive => Err(corrupt("a script has no end")),
        };
        played.map_err(|error| named(error, "play"))
    }

    async fn play_steps(&self, tx: &Transaction<'_>, script: &[Step]) -> Result<Vec<Reply>> {
        let joined = self.join(tx);
        let mut depth: u32 = 0;
        let mut replies = Vec::with_capacity(script.len());
        for step in script {
            replies.push(match step {
                Step::OwnRow(text) => {
                    let values = Params::new().one(text.as_str());
                    joined.db.execute(sql!("lab_row"), values).await?;
                    Reply::Done
                }
                Step::Enqueue(jobs) => Reply::Enqueue(joined.enqueue(jobs).await),
                Step::Publish(events) => Reply::Publish(joined.publish(events).await),
                Step::Progress(reports) => Reply::Progress(joined.progress(reports).await),
                Step::Settle(settlements) => Reply::Settle(joined.settle(settlements).await),
                Step::Once(once) => Reply::Once(joined.once(once).await),
                Step::Admit(wanted) => Reply::Admit(joined.admit(wanted).await),
                Step::Record(step) => Reply::Record(record(&joined, step).await),
                Step::Savepoint => {
                    depth += 1;
                    joined.db.batch("savepoint", &format!("savepoint lab_{depth}")).await?;
                    Reply::Done
                }
                Step::RollbackToSavepoint => {
                    let back =
                        format!("rollback to savepoint lab_{depth}; release savepoint lab_{depth}");
                    joined.db.batch("rollback", &back).await?;
                    depth = depth.saturating_sub(1);
                    Reply::Done
                }
                Step::ReleaseSavepoint => {
                    let release = format!("release savepoint lab_{depth}");
                    joined.db.batch("release", &release).await?;
                    depth = depth.saturating_sub(1);
                    Reply::Done
                }
            });
        }
        Ok(replies)
    }
}

async fn record(joined: &Joined<'_>, step: &RecordStep) -> RecordReply {
    match step {
        RecordStep::Put(put) => RecordReply::Put(joined.put(put).await),
        RecordStep::Get(id) => RecordReply::Get(joined.get(id).await),
        RecordStep::Delete(delete) => RecordReply::Delete(joined.delete(delete).await),
        RecordStep::List(list) => RecordReply::List(joined.list(list).await),
        RecordStep::PutBlob(blob) => RecordReply::PutBlob(joined.put_blob(blob).await),
        RecordStep::GetBlob(id) => RecordReply::GetBlob(joined.get_blob(id).await),
        RecordStep::DeleteBlob(id) => RecordReply::DeleteBlob(joined.delete_blob(id).await),
        RecordStep::Append(entry) => RecordReply::Append(joined.append(entry).await),
        RecordStep::Audit(filter, paging) => RecordReply::Audit(joined.audit(filter, paging).await),
        RecordStep::Take(wish) => RecordReply::Take(joined.take(wish).await),
    }
}

impl Origin {
    /// Of a store under test, whose own ids begin at a number.
    pub(crate) fn lab(first_id: u64, start: Option<Timestamp>) -> Self {
        let mut limits = Limits::default();
        limits.id_skew_max = None;
        Self { limits, ids: Ids::numbered_from(first_id), clock: start.map(ManualClock::at) }
    }
}

#[async_trait]
impl LabStore for PostgresStore {
    fn clock(&self) -> Option<ManualClock> {
        self.shared().clock.clone()
    }

    async fn dump(&self) -> Result<Dump> {
        let mut client = self.reader().await?;
        let begun = snapshot(&mut client).await?;
        dump(&self.db(&begun)).await
    }

    async fn anew(&self, start: Timestamp) -> Result<Option<Arc<dyn LabStore>>> {
        if self.behind_pooler() {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.cleared(start).await?)))
    }

    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        self.play_at(script, ending, IsolationLevel::ReadCommitted).await
    }
}

fn lab_target(url: &str, schema: &str) -> Result<Target> {
    let mut target = Target::parse(url)?;
    target.schema = Arc::new(Schema::new(schema)?);
    target.migrates = true;
    Ok(target)
}

async fn dump(db: &Db<'_>) -> Result<Dump> {
    let mut dump = Dump::default();
    let stored = TABLES.into_iter().filter(|table| *table != "requests");
    let texts: Vec<(&str, String)> = stored
        .map(|table| (table, format!("select * from {}.{table}", db.schema.quoted())))
        .collect();
    // Sent together: tests take dumps by the hundred thousand.
    let ask = texts.iter().map(|(_, text)| db.any(text));
    let found = futures_util::future::try_join_all(ask).await?;
    for (&(table, _), rows) in texts.iter().zip(&found) {
        for row in rows {
            let cells = cells(row)?;
            if table == "jobs" {
                dump.add("requests", request(&cells));
            }
            let elsewhere = |name: &str| REQUEST.contains(&name) || OWN.contains(&name);
            let shown = |(name, _): &(String, Cell)| table != "jobs" || !elsewhere(name);
            dump.add(table, cells.into_iter().filter(shown));
        }
    }
    Ok(dump)
}

/// The cells of a job's row that say what was asked for.
fn request(cells: &[(String, Cell)]) -> Vec<(String, Cell)> {
    let job = cells.iter().filter(|(name, _)| name == "id");
    let job = job.map(|(_, id)| ("job_id".to_owned(), id.clone()));
    let asked = cells.iter().filter(|(name, _)| REQUEST.contains(&name.as_str()));
    job.chain(asked.cloned()).collect()
}

fn cells(row: &Row) -> Result<Vec<(String, Cell)>> {
    let named_cell = |(at, column): (usize, &tokio_postgres::Column)| {
        let cell = cell(row, at, column.type_()).map_err(engine)?;
        Ok((column.name().to_owned(), cell.ok_or_else(|| corrupt("a type is unknown"))?))
    };
    row.columns().iter().enumerate().map(named_cell).collect()
}

fn cell(row: &Row, at: usize, kind: &Type) -> Result<Option<Cell>, tokio_postgres::Error> {
    let micros =
        |time: SystemTime| Timestamp::from_system_time(time).map_or(i64::MIN, Timestamp::as_micros);
    let found = match *kind {
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(|it| Cell::Int(i64::from(it))),
        Type::INT2 => row.try_get::<_, Option<i16>>(at)?.map(|it| Cell::Int(i64::from(it))),
        Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(|it| Cell::Int(i64::from(it))),
        Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Cell::Int),
        Type::TEXT => row.try_get::<_, Option<String>>(at)?.map(Cell::Text),
        Type::UUID => row.try_get::<_, Option<Uuid>>(at)?.map(Cell::Id),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Cell::Bytes),
        Type::TIMESTAMPTZ => {
            row.try_get::<_, Option<SystemTime>>(at)?.map(|it| Cell::Int(micros(it)))
        }
        _ => return Ok(None),
    };
    Ok(Some(found.unwrap_or(Cell::Null)))
}
