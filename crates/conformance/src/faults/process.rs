//! Owns a child process that is stopped, let go on and killed by its parent, and speaks to it by lines.
//! Signals go out by the command `kill`, to children of this program only. Unix only.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::clock;

/// A child process; killed when dropped.
///
/// ```no_run
/// use std::process::Command;
/// use std::time::Duration;
/// use leasehold_conformance::faults::process::Victim;
///
/// # fn stop() -> std::io::Result<()> {
/// let mut worker = Command::new(std::env::current_exe()?);
/// let mut worker = Victim::start(worker.env("MY_ROLE", "worker"))?;
/// worker.wait_for("begun", Duration::from_secs(30))?;
/// worker.pause()?; // and now its lease runs out
/// worker.go_on()?;
/// worker.wait_for("refused", Duration::from_secs(30))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Victim {
    process: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Victim {
    /// Starts a command whose lines on standard output are heard.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("the child has no pipe");
        let stdin = process.stdin.take().ok_or_else(missing)?;
        let stdout = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(io::Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
        });
        Ok(Self { process, stdin, lines })
    }

    /// Waits for a line that begins so, and passes over others; the line.
    ///
    /// # Errors
    /// `TimedOut`, and `UnexpectedEof` when the child has closed its output; each with what was heard.
    pub fn wait_for(&mut self, beginning: &str, wait: Duration) -> io::Result<String> {
        let begun = clock::now();
        let mut heard = Vec::new();
        let kind = loop {
            let left = wait.saturating_sub(clock::now().saturating_duration_since(begun));
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(beginning) => return Ok(line),
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Timeout) => break io::ErrorKind::TimedOut,
                Err(RecvTimeoutError::Disconnected) => break io::ErrorKind::UnexpectedEof,
            }
        };
        Err(io::Error::new(kind, format!("the child never said {beginning:?}, but {heard:?}")))
    }

    /// Says a line on the child's standard input.
    ///
    /// # Errors
    /// What the system says.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.stdin, "{line}")?;
        self.stdin.flush()
    }

    /// Stops the process where it is, all its threads.
    ///
    /// # Errors
    /// What the system says.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("STOP")
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// What the system says.
    pub fn go_on(&self) -> io::Result<()> {
        self.signal("CONT")
    }

    /// Sends a signal by its name without `SIG`.
    ///
    /// # Errors
    /// What the system says.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(pid).status()?;
        if sent.success() { Ok(()) } else { Err(io::Error::other("the child is gone")) }
    }

    /// Ends the process as `kill -9` does.
    ///
    /// # Errors
    /// What the system says.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }

    /// Waits for the process's own end; how it was.
    ///
    /// # Errors
    /// `TimedOut` when it does not end.
    pub fn end(&mut self, wait: Duration) -> io::Result<ExitStatus> {
        let begun = clock::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            if clock::now().saturating_duration_since(begun) > wait {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the child does not end"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ended = self.kill();
    }
}
