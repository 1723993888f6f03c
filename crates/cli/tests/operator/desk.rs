//! Owns a database of its own, the command run on it, and the reading of answers. Knows no command.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use leasehold::{
    ClaimRequest, Failure, FailureCode, JobId, JobKind, Json, NewJob, QueueName, Settlement, Store,
    StoreExt, Verdict, WorkerId,
};
use libtest_mimic::Failed;
use serde_json::Value;

/// A database of its own and a store on it.
pub(crate) struct Desk {
    pub(crate) url: String,
    pub(crate) folder: PathBuf,
    /// The server and the schema, where there is a server.
    schema: Option<(String, String)>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Desk {
    pub(crate) fn sqlite(name: &str) -> Result<Self, Failed> {
        let folder =
            std::env::temp_dir().join(format!("leasehold-operator-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Self::open(format!("sqlite:{}", folder.join("jobs.db").display()), folder, None)
    }

    pub(crate) fn postgres(name: &str, server: &str) -> Result<Self, Failed> {
        let join = if server.contains('?') { '&' } else { '?' };
        let schema: String =
            format!("desk_{}_{name}", std::process::id()).chars().take(48).collect();
        let url = format!("{server}{join}schema={schema}&migrate=auto&pool_size=4");
        let folder = std::env::temp_dir().join(format!("leasehold-no-folder-{name}"));
        Self::open(url, folder, Some((server.to_owned(), schema)))
    }

    fn open(
        url: String,
        folder: PathBuf,
        schema: Option<(String, String)>,
    ) -> Result<Self, Failed> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let store = runtime.block_on(leasehold::connect(&url))?;
        Ok(Self { url, folder, schema, store, runtime })
    }

    /// Runs statements behind the store's back; tables are named as SQLite has them.
    pub(crate) fn sql(&self, text: &'static str) -> Result<(), Failed> {
        let failed = |why: String| leasehold::Error::new(leasehold::ErrorKind::Corrupt, "sql", why);
        let Some((server, schema)) = &self.schema else {
            let behind = self.wait(leasehold::sqlite::open(&self.url))?;
            return self.wait(behind.transaction(move |tx| {
                tx.execute_batch(text).map_err(|error| failed(error.to_string()))
            }));
        };
        let text = format!("set search_path to \"{schema}\"; {}", text.replace("leasehold_", ""));
        self.wait(async {
            let opened = tokio_postgres::connect(server, tokio_postgres::NoTls).await;
            let (client, connection) = opened.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            client.batch_execute(&text).await.map_err(|error| format!("{error:?}"))
        })
    }

    pub(crate) fn wait<T, E: std::fmt::Display>(
        &self,
        it: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failed> {
        self.runtime.block_on(it).map_err(|error| error.to_string().into())
    }

    pub(crate) fn enqueue(&self, job: NewJob) -> Result<JobId, Failed> {
        Ok(self.wait(self.store.enqueue_one(job))?.job())
    }

    /// Fails a job of a queue for good.
    pub(crate) fn kill_one(&self, queue: &str) -> Result<(), Failed> {
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::new(queue)?]);
        let claim = self.wait(self.store.claim(request))?.pop().ok_or("no claim")?;
        let failure = Failure::new(FailureCode::SchemaInvalid, "no good; password=hunter2-hunter2");
        let verdict = Verdict::DeadLetter { failure };
        self.wait(self.store.settle_one(Settlement::new(claim.fence, verdict)))?;
        Ok(())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        Ok(command.args(arguments).env("STORE_URL", &self.url).env("USER", "tester").output()?)
    }

    /// Runs with `--json`, expects success, and reads the answer.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value, Failed> {
        let out = self.run(&[arguments, &["--json"]].concat())?;
        if !out.status.success() {
            return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&out.stderr)).into());
        }
        Ok(serde_json::from_slice(&out.stdout)?)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn job(queue: &str) -> Result<NewJob, Failed> {
    let payload = Json::parse("{\"secret\":\"payload-marker\"}")?;
    Ok(NewJob::new(JobKind::new("print")?, payload).queue(QueueName::new(queue)?))
}

pub(crate) fn same(what: &str, got: &Value, wanted: impl Into<Value>) -> Result<(), Failed> {
    let wanted = wanted.into();
    if *got == wanted { Ok(()) } else { Err(format!("{what}: {got}, wanted {wanted}").into()) }
}

pub(crate) fn rows<'a>(answer: &'a Value, part: &str) -> Result<&'a Vec<Value>, Failed> {
    let part = if part.is_empty() { answer } else { answer.get(part).ok_or("no such part")? };
    part.get("rows").and_then(Value::as_array).ok_or_else(|| "no rows".into())
}

pub(crate) fn at<'a>(row: &'a Value, path: &str) -> &'a Value {
    row.pointer(path).unwrap_or(&Value::Null)
}
