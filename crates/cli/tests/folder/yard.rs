//! Owns the surroundings of one play: a folder with files, a configuration, a database of its own,
//! and the processes of the command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::sqlite::rusqlite::Connection;
use leasehold::{Found, JobFilter, JobView, Paging, Query, Store};
use libtest_mimic::Failed;

/// The surroundings; gone when dropped.
pub(crate) struct Yard {
    /// Everything of this play.
    root: PathBuf,
    url: String,
    /// The server and the schema, where there is a server.
    schema: Option<(String, String)>,
    runtime: tokio::runtime::Runtime,
}

impl Yard {
    pub(crate) fn sqlite(name: &str) -> Result<Self, Failed> {
        let root = Self::root(name, "sqlite");
        let url = format!("sqlite:{}", root.join("jobs.db").display());
        Self::new(root, url, None)
    }

    pub(crate) fn postgres(name: &str, server: &str) -> Result<Self, Failed> {
        let join = if server.contains('?') { '&' } else { '?' };
        let short = name.rsplit("::").next().unwrap_or(name);
        let schema: String =
            format!("folder_{}_{short}", std::process::id()).chars().take(48).collect();
        let url = format!("{server}{join}schema={schema}&migrate=auto&pool_size=4");
        Self::new(Self::root(name, "postgres"), url, Some((server.to_owned(), schema)))
    }

    fn root(name: &str, engine: &str) -> PathBuf {
        let name = name.replace("::", "-");
        let folder = format!("leasehold-folder-{}-{engine}-{name}", std::process::id());
        std::env::temp_dir().join(folder)
    }

    fn new(root: PathBuf, url: String, schema: Option<(String, String)>) -> Result<Self, Failed> {
        std::fs::create_dir_all(root.join("in"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { root, url, schema, runtime })
    }

    /// The folder that is scanned.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.root.join("in")
    }

    /// A path beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn put(&self, name: impl AsRef<Path>, text: &str) -> Result<PathBuf, Failed> {
        let path = self.inbox().join(name);
        std::fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Writes the configuration: the store, the folder, the command, and what the play adds.
    pub(crate) fn configure(&self, command: &[&str], more: &str) -> Result<(), Failed> {
        let list: Vec<String> =
            command.iter().map(|part| serde_json::json!(part).to_string()).collect();
        let text = format!(
            "producer:\n  scan_dir: {:?}\n  scan_interval: 200ms\n{}worker:\n  command: [{}]\n  heartbeat_ttl: 5s\n{}",
            self.inbox().display().to_string(),
            section(more, "producer"),
            list.join(", "),
            section(more, "worker"),
        );
        Ok(std::fs::write(self.beside("leasehold.yaml"), text)?)
    }

    /// A command that writes the path of its file to `done`, a line each.
    pub(crate) fn configure_to_record(&self, more: &str) -> Result<(), Failed> {
        let done = self.beside("done").display().to_string();
        self.configure(
            &["sh", "-c", "printf '%s\\0' \"$1\" >> \"$2\"", "sh", "{path}", &done],
            more,
        )
    }

    /// The paths that were recorded, in order.
    pub(crate) fn done(&self) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(self.beside("done")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(arguments)
            .arg("--config")
            .arg(self.beside("leasehold.yaml"))
            .env("STORE_URL", &self.url)
            .env("OBSERVABILITY_METRICS_PORT", "0")
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end, and expects it to end well.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Output, Failed> {
        self.run_to(0, arguments)
    }

    /// Runs to the end, and expects this exit code.
    pub(crate) fn run_to(&self, code: i32, arguments: &[&str]) -> Result<Output, Failed> {
        let out = self.command(arguments).output()?;
        if out.status.code() == Some(code) {
            return Ok(out);
        }
        Err(format!("{arguments:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr))
            .into())
    }

    /// Starts and leaves running; its log goes to a file.
    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Running, Failed> {
        let log = std::fs::File::options().create(true).append(true).open(self.beside("log"))?;
        Ok(Running(self.command(arguments).stdout(Stdio::null()).stderr(log).spawn()?))
    }

    /// Every job there is.
    pub(crate) fn jobs(&self) -> Result<Vec<JobView>, Failed> {
        self.runtime.block_on(async {
            let store: Arc<dyn Store> = leasehold::connect(&self.url).await?;
            let mut jobs = Vec::new();
            let mut paging = Paging::first(1000);
            loop {
                let page = store.find(Query::Jobs(JobFilter::new(), paging)).await?;
                jobs.extend(page.items.into_iter().filter_map(|found| match found {
                    Found::Job(job) => Some(*job),
                    _ => None,
                }));
                match page.next {
                    Some(next) => paging = Paging::first(1000).after(next),
                    None => return Ok(jobs),
                }
            }
        })
    }

    /// Does something with the store of the play.
    pub(crate) fn with_store<T>(
        &self,
        act: impl AsyncFnOnce(Arc<dyn Store>) -> leasehold::Result<T>,
    ) -> Result<T, Failed> {
        Ok(self.runtime.block_on(async { act(leasehold::connect(&self.url).await?).await })?)
    }

    /// Runs statements behind the store's back; tables are named as SQLite has them.
    pub(crate) fn sql(&self, text: &'static str) -> Result<(), Failed> {
        let failed = |why: String| leasehold::Error::new(leasehold::ErrorKind::Corrupt, "sql", why);
        self.runtime.block_on(async {
            let Some((server, schema)) = &self.schema else {
                let behind = leasehold::sqlite::open(&self.url).await?;
                let run = move |tx: &leasehold::sqlite::rusqlite::Transaction<'_>| {
                    tx.execute_batch(text).map_err(|error| failed(error.to_string()))
                };
                return Ok(behind.transaction(run).await?);
            };
            let text = text.replace("leasehold_", "");
            let (client, connection) =
                tokio_postgres::connect(server, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            Ok(client.batch_execute(&format!("set search_path to \"{schema}\"; {text}")).await?)
        })
    }

    /// Everything that the database holds: the bytes of its files, or every row of every table.
    pub(crate) fn stored_bytes(&self) -> Result<Vec<u8>, Failed> {
        let Some((server, schema)) = &self.schema else {
            let file = |name: &str| std::fs::read(self.beside(name)).unwrap_or_default();
            return Ok(["jobs.db", "jobs.db-wal"].map(file).concat());
        };
        self.runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(server, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            let mut bytes = Vec::new();
            let names = include_str!("tables.sql").replace("{schema}", schema);
            for table in client.query(&names, &[]).await? {
                let table: String = table.get(0);
                let rows = include_str!("whole.sql").replace("{schema}", schema);
                for row in client.query(&rows.replace("{table}", &table), &[]).await? {
                    bytes.extend_from_slice(row.get::<_, String>(0).as_bytes());
                    bytes.push(b'\n');
                }
            }
            Ok(bytes)
        })
    }

    /// The URL of the play's schema on the server, where there is a server.
    pub(crate) fn server_url(&self) -> Option<String> {
        self.schema.as_ref().map(|_| self.url.clone())
    }

    /// Begins a transaction behind the store's back that keeps others out: of the whole file, or as `on_server`
    /// says, in which `{schema}` is the play's own.
    pub(crate) fn hold(&self, on_server: &str) -> Result<Held, Failed> {
        let Some((server, schema)) = &self.schema else {
            let file = Connection::open(self.beside("jobs.db"))?;
            file.busy_timeout(Duration::from_secs(60))?;
            file.execute_batch(include_str!("hold_file.sql"))?;
            return Ok(Held::File(file));
        };
        let text = on_server.replace("{schema}", &format!("\"{schema}\""));
        self.runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(server, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute(&text).await?;
            Ok(Held::Server(client))
        })
    }

    /// Whether anybody waits for what a transaction holds.
    pub(crate) fn waits_for(&self, client: &tokio_postgres::Client) -> Result<bool, Failed> {
        let waiting = self.runtime.block_on(client.query_one(include_str!("waiting.sql"), &[]))?;
        Ok(waiting.get::<_, i64>(0) > 0)
    }

    /// What the processes that were left running have logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.beside("log")).unwrap_or_default()
    }

    pub(crate) fn engine(&self) -> &'static str {
        if self.schema.is_some() { "postgres" } else { "sqlite" }
    }

    /// How many jobs have succeeded.
    pub(crate) fn succeeded(&self) -> Result<usize, Failed> {
        self.runtime.block_on(async {
            let stats = leasehold::connect(&self.url).await?.stats().await?;
            let all: u64 = stats.queues.iter().map(|queue| queue.succeeded).sum();
            Ok(usize::try_from(all)?)
        })
    }

    /// Looks until `holds`, for a minute at most.
    pub(crate) fn until(
        &self,
        what: &str,
        mut holds: impl FnMut(&Self) -> Result<bool, Failed>,
    ) -> Result<(), Failed> {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if holds(self)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.beside("log")).unwrap_or_default();
        Err(format!("not within a minute: {what}\n{log}").into())
    }
}

/// A transaction that keeps others out until it is released or dropped.
pub(crate) enum Held {
    /// Of a file.
    File(Connection),
    /// Of a server.
    Server(tokio_postgres::Client),
}

impl Held {
    pub(crate) fn release(self, yard: &Yard) -> Result<(), Failed> {
        match self {
            Self::File(file) => file.execute_batch("rollback")?,
            Self::Server(client) => yard.runtime.block_on(client.batch_execute("rollback"))?,
        }
        Ok(())
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The lines of `more` that belong to a section, given as `section: line` each.
fn section(more: &str, name: &str) -> String {
    let prefix = format!("{name}: ");
    more.lines()
        .filter_map(|line| line.trim().strip_prefix(&prefix))
        .map(|line| format!("  {line}\n"))
        .collect()
}

/// A process of the command; killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn of(child: Child) -> Self {
        Self(child)
    }

    /// Whether the process has a file open.
    pub(crate) fn has_open(&self, path: &Path) -> bool {
        let folder = format!("/proc/{}/fd", self.0.id());
        let Ok(open) = std::fs::read_dir(folder) else { return false };
        open.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|it| it == path))
    }

    /// The numbers of the files that the process has open.
    #[cfg(target_os = "linux")]
    pub(crate) fn files(&self) -> Result<Vec<u64>, Failed> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.0.id()))?;
        Ok(open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// Sets how many files the process may have open from now on.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit_files(&self, most: u64) -> Result<(), Failed> {
        let (id, most) = (self.0.id().to_string(), format!("--nofile={most}:"));
        let set = Command::new("prlimit").args(["--pid", &id, &most]).status()?;
        same("prlimit", set.success(), true)
    }

    pub(crate) fn kill(&mut self) -> Result<(), Failed> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Asks it to end, and gives its exit code; a minute at most.
    pub(crate) fn terminate(&mut self) -> Result<Option<i32>, Failed> {
        self.send("TERM")?;
        self.end()
    }

    /// Sends a signal.
    pub(crate) fn send(&self, signal: &str) -> Result<(), Failed> {
        let id = self.0.id().to_string();
        Command::new("kill").args([&format!("-{signal}"), &id]).status()?;
        Ok(())
    }

    /// Waits for its end, a minute at most, and gives its exit code.
    pub(crate) fn end(&mut self) -> Result<Option<i32>, Failed> {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("did not end within a minute of its signal".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fails unless the two are equal.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: T,
    wanted: T,
) -> Result<(), Failed> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got:?}, wanted {wanted:?}").into()) }
}

/// Says whether a process runs; one that only waits to be collected does not.
pub(crate) fn runs(id: &str) -> bool {
    let facts = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = facts.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
