//! Owns servers of these tests' own beside the throwaway one: made in its folders and run by its account, so
//! never by root, on unix sockets only, and removed when a test lets go of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leasehold_postgres::tokio_postgres::{Client, NoTls, Row, connect};

/// What must happen happens within this time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server may be made, and by what.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    data: PathBuf,
    sockets: PathBuf,
    programs: PathBuf,
    /// The account of the servers, where it is another than this one.
    account: Option<String>,
}

impl Host {
    /// Beside the server that the throwaway script has started, if it has.
    pub(crate) fn from_env() -> Option<Self> {
        let data = PathBuf::from(std::env::var_os("LEASEHOLD_TEST_POSTGRES_DATA")?);
        let told = |program: &str, arguments: &[&str]| {
            let done = Command::new(program).args(arguments).output().expect("a program");
            String::from_utf8(done.stdout).expect("text").trim().to_owned()
        };
        let owner = told("stat", &["-c", "%U", &data.to_string_lossy()]);
        Some(Self {
            data: data.parent()?.to_owned(),
            sockets: std::env::var_os("LEASEHOLD_TEST_POSTGRES_SOCKETS")?.into(),
            programs: std::env::var_os("LEASEHOLD_PG_BIN")?.into(),
            account: Some(owner).filter(|owner| *owner != told("id", &["-un"])),
        })
    }

    /// Runs a program as the account of the servers.
    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = match &self.account {
            None => Command::new(program),
            Some(account) => {
                let mut command = Command::new("runuser");
                command.args(["-u", account, "--", program]);
                command
            }
        };
        // A server that is started keeps no end of a pipe that this process waits for.
        let log = self.data.join(format!("test-{}.log", std::process::id()));
        let log = std::fs::File::options().create(true).append(true).open(&log).expect("a log");
        command.stdout(log.try_clone().expect("a log")).stderr(log).current_dir("/");
        let status = command.args(arguments).status().expect("a program");
        assert!(status.success(), "{program} {arguments:?}: {status}; see {}", self.data.display());
    }

    /// A place for a file that servers may read.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.sockets.join(format!("{name}-{}", std::process::id()))
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).to_string_lossy().into_owned()
    }
}

/// A server, which goes with this value.
#[derive(Debug)]
pub(crate) struct Cluster {
    host: Host,
    data: String,
    sockets: String,
    runs: bool,
}

impl Cluster {
    fn place(host: &Host, name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("{name}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let inside = |folder: &Path| folder.join(&name).to_string_lossy().into_owned();
        let (data, sockets) = (inside(&host.data), inside(&host.sockets));
        host.run("mkdir", &["-m", "700", &data]);
        host.run("mkdir", &["-m", "755", &sockets]);
        Self { host: host.clone(), data, sockets, runs: false }
    }

    /// An empty server, with variables in its environment.
    pub(crate) fn start(host: &Host, name: &str, variables: &[&str]) -> Self {
        let mut made = Self::place(host, name);
        let of_server = ["-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions"];
        let mut arguments = vec!["-D", &made.data, "--locale=C.UTF-8", "-E", "UTF8"];
        arguments.extend(of_server);
        host.run(&host.program("initdb"), &arguments);
        made.go(variables);
        made
    }

    /// A standby of this server that has followed it up to now.
    pub(crate) fn standby(&self, name: &str) -> Self {
        let mut made = Self::place(&self.host, name);
        let from = ["-h", &self.sockets, "-U", "postgres", "-X", "stream", "-R", "-c", "fast"];
        let mut arguments = vec!["-D", &made.data, "--no-sync"];
        arguments.extend(from);
        self.host.run(&self.host.program("pg_basebackup"), &arguments);
        made.go(&[]);
        made
    }

    fn go(&mut self, variables: &[&str]) {
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}' -c fsync=off \
             -c full_page_writes=off",
            self.sockets
        );
        let (program, log) = (self.host.program("pg_ctl"), format!("{}/server.log", self.data));
        let mut arguments = variables.to_vec();
        arguments.extend([&*program, "-D", &self.data, "-w", "-t", "60", "-l", &log]);
        arguments.extend(["-o", &options, "start"]);
        self.runs = true;
        self.host.run("env", &arguments);
    }

    /// Stops it as a crash would.
    pub(crate) fn crash(&mut self) {
        let stop = ["-D", &self.data, "-m", "immediate", "-w", "-t", "60", "stop"];
        self.host.run(&self.host.program("pg_ctl"), &stop);
        self.runs = false;
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) {
        let promote = ["-D", &self.data, "-w", "-t", "60", "promote"];
        self.host.run(&self.host.program("pg_ctl"), &promote);
    }

    /// The folder of its socket.
    pub(crate) fn sockets(&self) -> &str {
        &self.sockets
    }

    pub(crate) fn url(&self) -> String {
        url(&self.sockets)
    }

    /// A session of an operator.
    pub(crate) async fn session(&self) -> Client {
        let (client, connection) = connect(&self.url(), NoTls).await.expect("a session");
        tokio::spawn(connection);
        client
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.runs {
            self.crash();
        }
        for folder in [&self.data, &self.sockets] {
            // The script removes what stays.
            let _gone = std::fs::remove_dir_all(folder);
        }
    }
}

/// The URL of the server whose socket is in a folder.
pub(crate) fn url(sockets: &str) -> String {
    format!("postgres://postgres@/postgres?host={sockets}")
}

/// Waits until a query's only value is true.
pub(crate) async fn until_true(client: &Client, query: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let row: Row = client.query_one(query, &[]).await.expect("an answer");
        if row.get::<_, Option<bool>>(0) == Some(true) {
            return;
        }
        assert!(Instant::now() < end, "never true: {query}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
