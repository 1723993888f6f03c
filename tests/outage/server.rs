//! Owns the throwaway server that these tests may crash, and the pooler before it: where they are, and
//! how they are hurt. They are those that the scripts have started, never others.

use std::path::PathBuf;
use std::process::Command;

use leasehold_core::WorkerId;
use leasehold_postgres::tokio_postgres::{self, NoTls};
use libtest_mimic::Failed;

/// Where the store is reached.
#[derive(Clone, Debug)]
pub(crate) struct Address(String);

impl Address {
    fn from_env() -> Option<Self> {
        std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok().map(Self)
    }

    /// The URL of a schema that nobody has used.
    pub(crate) fn fresh_schema(&self) -> String {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        let name = WorkerId::new().as_uuid().as_simple().to_string();
        format!("{}{sign}migrate=auto&schema=outage_{name}", self.0)
    }
}

/// A server that may be crashed.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    data: PathBuf,
    programs: PathBuf,
}

impl Server {
    /// The server that the throwaway script has started, if it has.
    pub(crate) fn from_env() -> Option<Self> {
        Some(Self {
            address: Address::from_env()?,
            data: std::env::var_os("LEASEHOLD_TEST_POSTGRES_DATA")?.into(),
            programs: std::env::var_os("LEASEHOLD_PG_BIN")?.into(),
        })
    }

    /// Stops the server as a crash would, and starts it again with the options it had.
    pub(crate) fn restart_at_once(&self) -> Result<(), Failed> {
        let owner = Command::new("stat").args(["-c", "%U"]).arg(&self.data).output()?.stdout;
        let owner = String::from_utf8(owner)?.trim().to_owned();
        let me = String::from_utf8(Command::new("id").arg("-un").output()?.stdout)?;
        let program = self.programs.join("pg_ctl");
        let mut command = match owner == me.trim() {
            true => Command::new(program),
            false => {
                let mut command = Command::new("runuser");
                command.args(["-u", &owner, "--"]).arg(program);
                command
            }
        };
        command.args(["-w", "-t", "30", "-m", "immediate", "-D"]).arg(&self.data);
        command.arg("-l").arg(self.data.join("server.log")).arg("restart").current_dir("/");
        let done = command.output()?;
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
        }
    }

    /// Ends every other session, whatever it is doing.
    pub(crate) fn end_sessions(&self) -> Result<(), Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.address.0, NoTls).await?;
            let serving = tokio::spawn(connection);
            let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                       where pid <> pg_backend_pid() and backend_type = 'client backend'";
            client.execute(end, &[]).await?;
            drop(client);
            serving.await??;
            Ok(())
        })
    }
}

/// A pooler that may be killed.
#[derive(Clone, Debug)]
pub(crate) struct Pooler {
    pub(crate) address: Address,
    restart: PathBuf,
}

impl Pooler {
    /// The pooler that its script has started, if it has.
    pub(crate) fn from_env() -> Option<Self> {
        let restart = std::env::var_os("LEASEHOLD_TEST_POOLER")?.into();
        Some(Self { address: Address::from_env()?, restart })
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&self) -> Result<(), Failed> {
        let done = Command::new(&self.restart).output()?;
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
        }
    }
}
