//! Owns the processes beside this one: how they are started, heard, paused and ended.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Settings;

/// Says which role this process plays.
pub(crate) const ROLE: &str = "QUICKSTART_ROLE";
const URL: &str = "QUICKSTART_URL";
const PLACE: &str = "QUICKSTART_PLACE";
const SLOW: &str = "QUICKSTART_SLOW";

/// A process of this example; ended when dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    lines: UnboundedReceiver<String>,
}

impl Child {
    pub(crate) fn start(role: &str, settings: &Settings, slow: bool) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, role).env(URL, settings.url()).env(PLACE, &settings.place);
        if slow {
            command.env(SLOW, "1");
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (sender, lines) = unbounded_channel();
        if let Some(out) = process.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
            });
        }
        Ok(Self { process, lines })
    }

    /// The rest of the next line that begins so; `None` when the process ends or stays silent.
    pub(crate) async fn hears(&mut self, beginning: &str) -> Option<String> {
        let hear = async {
            loop {
                let line = self.lines.recv().await?;
                if let Some(rest) = line.strip_prefix(beginning) {
                    return Some(rest.trim().to_owned());
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), hear).await.ok().flatten()
    }

    pub(crate) fn say(&mut self) -> std::io::Result<()> {
        match &mut self.process.stdin {
            Some(stdin) => writeln!(stdin).and_then(|()| stdin.flush()),
            None => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Pauses (`STOP`) or wakes (`CONT`) the process.
    pub(crate) fn signal(&self, name: &str) -> Result<(), Box<dyn Error>> {
        let pid = self.process.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status()?;
        if status.success() { Ok(()) } else { Err(format!("kill -{name} failed").into()) }
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ended = self.kill();
    }
}

/// What the director tells a child: the database, the place, whether to be slow.
pub(crate) fn settings() -> Result<(String, PathBuf, bool), Box<dyn Error>> {
    let slow = std::env::var_os(SLOW).is_some();
    Ok((std::env::var(URL)?, std::env::var(PLACE)?.into(), slow))
}

/// Says a line to the director.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _gone = writeln!(out, "{line}").and_then(|()| out.flush());
}
