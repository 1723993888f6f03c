//! Owns the second connection to a PostgreSQL server.

use leasehold::postgres::tokio_postgres::error::SqlState;
use leasehold::postgres::tokio_postgres::types::ToSql;
use leasehold::postgres::tokio_postgres::{Client, Config, Error, NoTls};
use leasehold::{QueueName, Result};

use super::{Crowd, failed, id_prefix, refused};

/// Parameters of a URL that are the store's, not the driver's.
const OWN: [&str; 6] = ["schema=", "migrate=", "pooler=", "pool_size=", "sslmode=", "sslrootcert="];
/// Rows of one statement.
const STEP: usize = 100_000;

/// A transaction that stays open until it is told to end.
#[derive(Debug)]
pub struct Snapshot(Session);

/// A connection, and the name of the store's schema.
#[derive(Debug)]
struct Session {
    client: Client,
    schema: String,
}

impl Snapshot {
    pub async fn open(url: &str) -> Result<Self> {
        let session = Session::open(url).await?;
        let text = session.of_schema(include_str!("postgres_hold.sql"));
        session.client.batch_execute(&text).await.map_err(|error| failed("hold", error))?;
        Ok(Self(session))
    }

    pub async fn end(self) -> Result<()> {
        self.0.client.batch_execute("rollback").await.map_err(|error| failed("hold", error))
    }
}

pub(super) async fn fill(url: &str, queue: &QueueName, crowd: Crowd, rows: i64) -> Result<()> {
    let session = Session::open(url).await?;
    session.fill(queue, crowd, rows).await.map_err(|error| failed("fill", error))
}

impl Session {
    async fn open(url: &str) -> Result<Self> {
        let (config, schema) = target(url)?;
        let (client, connection) =
            config.connect(NoTls).await.map_err(|error| failed("bench", error))?;
        tokio::spawn(connection);
        Ok(Self { client, schema })
    }

    fn of_schema(&self, text: &str) -> String {
        text.replace("leasehold.", &format!("\"{}\".", self.schema))
    }

    async fn fill(&self, queue: &QueueName, crowd: Crowd, rows: i64) -> Result<(), Error> {
        let text = self.of_schema(include_str!("postgres_fill.sql"));
        let insert = self.client.prepare(&text).await?;
        let seconds = f64::from(i32::try_from(crowd.due_in()).unwrap_or(0));
        let (queue, state, prefix) = (queue.as_str(), crowd.state(), id_prefix());
        for first in (0..rows).step_by(STEP) {
            let step = i64::try_from(STEP).unwrap_or(1).min(rows - first);
            let values: [&(dyn ToSql + Sync); 6] =
                [&queue, &state, &seconds, &first, &step, &prefix];
            self.client.execute(&insert, &values).await?;
        }
        let marks = self.of_schema(include_str!("postgres_marks.sql"));
        self.client.execute(&marks, &[&queue, &seconds]).await?;
        let analyze = self.of_schema("vacuum analyze leasehold.jobs");
        self.client.batch_execute(&analyze).await?;
        // What the rows left to write is written before anything is timed, where the role may ask for it.
        match self.client.batch_execute("checkpoint").await {
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            done => done,
        }
    }
}

/// What the driver has to know, and the schema.
fn target(url: &str) -> Result<(Config, String)> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (own, rest): (Vec<&str>, Vec<&str>) = query
        .split('&')
        .filter(|it| !it.is_empty())
        .partition(|it| OWN.iter().any(|name| it.starts_with(name)));
    if own.iter().any(|it| it.starts_with("sslmode=") && *it != "sslmode=disable") {
        let why = "w5 and w7 need a second connection, which is made without TLS only";
        return Err(refused(why));
    }
    let schema = own.iter().find_map(|it| it.strip_prefix("schema=")).unwrap_or("leasehold");
    let text = format!("{place}?{}", rest.join("&"));
    let config = text.parse().map_err(|error: Error| failed("bench", error))?;
    Ok((config, schema.to_owned()))
}
