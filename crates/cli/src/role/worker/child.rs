//! Owns the end of a command with everything that it started: they share a process group, and the
//! group is signalled as one. Dropping the group kills it, so no panic leaves one behind.

use std::time::Duration;

use tokio::process::Child;

/// The process group of a running command.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    /// Takes the group that the command leads.
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: leader.and_then(rustix::process::Pid::from_raw) }
    }

    /// Asks the group to end, waits for its leader, and kills what is left.
    pub(super) async fn end(&self, child: &mut Child, mercy: Duration) {
        self.signal(rustix::process::Signal::TERM);
        let _ = tokio::time::timeout(mercy, child.wait()).await;
        self.signal(rustix::process::Signal::KILL);
        let _ = child.wait().await;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // A group that is gone already is what was wanted.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
impl Group {
    /// There are no groups here; the command itself is ended.
    pub(super) fn of(_child: &Child) -> Self {
        Self {}
    }

    /// Kills the command.
    pub(super) async fn end(&self, child: &mut Child, _mercy: Duration) {
        let _ = child.kill().await;
    }
}
