//! Owns the end of a command with everything that it started: they share a process group, and the
//! group is signalled as one. Dropping the group kills it, so no panic leaves one behind.

#[cfg(unix)]
use std::collections::BTreeSet;
#[cfg(unix)]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Child;

/// The leaders of the groups that run, for a process that ends without dropping anything.
#[cfg(unix)]
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

#[cfg(unix)]
fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every group that runs: the process is about to end at once.
#[cfg(unix)]
pub(in crate::role) fn kill_all() {
    for leader in running().iter().filter_map(|id| rustix::process::Pid::from_raw(*id)) {
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
}

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
        running().extend(leader);
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
        if let Some(leader) = self.leader {
            running().remove(&leader.as_raw_nonzero().get());
        }
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
