//! Owns the use of a schema by one test after the other: what it holds is deleted, which takes a small part
//! of the time of making it anew. Refuses to touch a schema that a store still uses. Compiled only with `lab`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use leasehold_core::{Lifecycle, Result, Timestamp};
use tokio_postgres::Client;

use crate::bind::Params;
use crate::control::register;
use crate::error::{corrupt, engine};
use crate::schema::Schema;
use crate::statement::{Db, sql};
use crate::store::{Origin, PostgresStore};

/// The tables of a schema as statements that delete what they hold. $1 schema.
const CLEAR: &str = "select string_agg(format('delete from %I.%I', schemaname, tablename), ';') \
     from pg_catalog.pg_tables where schemaname = $1 and tablename <> 'schema'";
/// Ends the sessions of an application but this one, and waits until they are gone.
const END: &str = "select count(pg_terminate_backend(pid, 60000)) from pg_catalog.pg_stat_activity \
     where pid <> pg_backend_pid() and application_name";

/// Schemas of one server for stores under test: one that no store uses any more is used again.
#[derive(Debug)]
pub struct LabSchemas {
    url: String,
    prefix: String,
    number: AtomicU64,
    made: Mutex<Vec<(String, Weak<Schema>)>>,
}

impl LabSchemas {
    /// Names the server, and what the schemas' names begin with.
    pub fn new(url: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: prefix.into(),
            number: AtomicU64::new(0),
            made: Mutex::default(),
        }
    }

    /// Opens an empty store under test, as [`PostgresStore::lab`] does.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn store(&self, start: Timestamp) -> Result<PostgresStore> {
        let (name, is_known) = self.free();
        let join = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{join}application_name={name}", self.url);
        let store = if is_known {
            PostgresStore::lab_cleared(&url, &name, start).await?
        } else {
            PostgresStore::lab(&url, &name, Some(start)).await?
        };
        let using = Arc::downgrade(&store.shared().schema);
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push((name, using));
        Ok(store)
    }

    /// How many of its schemas no store uses.
    pub fn idle(&self) -> usize {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter(|(_, using)| using.strong_count() == 0).count()
    }

    /// Takes a schema that nobody uses off the list, or names one that is not there yet.
    fn free(&self) -> (String, bool) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // A pooler's sessions cannot be told apart.
        let is_pooled = self.url.contains("pooler=transaction");
        let is_free = |(_, using): &(String, Weak<Schema>)| !is_pooled && using.strong_count() == 0;
        if let Some(at) = made.iter().position(is_free) {
            return (made.swap_remove(at).0, true);
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        (format!("{}_{}_{number}", self.prefix, std::process::id()), false)
    }
}

impl PostgresStore {
    /// Opens a store under test in a schema that has been one's, and is empty afterwards; sessions under
    /// the schema's name are ended first.
    async fn lab_cleared(url: &str, schema: &str, start: Timestamp) -> Result<Self> {
        Self::lab_alone(url, schema, &format!("{END} = '{schema}'")).await?;
        let store = Self::lab_again(url, schema, Some(start)).await?;
        let client = store.reader().await?;
        clear(&client, store.schema()).await?;
        drop(client);
        Ok(store)
    }

    /// An empty store in place of this one, on its connections.
    pub(crate) async fn cleared(&self, start: Timestamp) -> Result<Self> {
        let client = self.reader().await?;
        clear(&client, self.schema()).await?;
        drop(client);
        Ok(self.beside(Origin::lab(1, Some(start))))
    }
}

/// Deletes all that a schema holds, but for what its making has put there.
async fn clear(client: &Client, schema: &Schema) -> Result<()> {
    let row = client.query_one(CLEAR, &[&schema.name()]).await.map_err(engine)?;
    let deletes: Option<String> = row.get(0);
    let deletes = deletes.ok_or_else(|| corrupt("the schema has no tables"))?;
    client.batch_execute(&deletes).await.map_err(engine)?;
    let db = Db::plain(client, schema);
    db.execute(sql!("lab_first"), Params::new()).await?;
    for lifecycle in Lifecycle::shipped() {
        register(&db, &lifecycle).await?;
    }
    Ok(())
}
