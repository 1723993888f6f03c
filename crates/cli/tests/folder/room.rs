//! A machine that has no room for one more process: the job waits for it, and loses nothing.

use leasehold::State;
use libtest_mimic::Failed;

use super::yard::{Yard, same};

/// Enough for a look at a file, too few for the pipes of a command.
const SPARE: usize = 2;
const MANY: u64 = 1024;

/// Proves: WQ-19
pub(crate) fn want_of_files_costs_no_attempt(yard: &Yard) -> Result<(), Failed> {
    yard.configure(
        &["true"],
        "worker: max_retries: 0
         worker: count: 1",
    )?;
    yard.put("first", "x")?;
    yard.run(&["--role=producer", "--once"])?;
    let mut running = yard.start(&["--role=worker"])?;
    yard.until("it works", |yard| Ok(yard.succeeded()? == 1))?;
    let open = running.files()?;
    let mut free = (0..MANY).filter(|number| !open.contains(number));
    let most = free.nth(SPARE).ok_or("all are open")?;
    running.limit_files(most)?;
    yard.put("second", "x")?;
    yard.run(&["--role=producer", "--once"])?;
    yard.until("it is put off", |yard| Ok(yard.log().contains("put off: no room")))?;
    running.limit_files(MANY)?;
    yard.until("it works again", |yard| Ok(yard.succeeded()? == 2))?;
    let whole = |job: &leasehold::JobView| job.state == State::Succeeded && job.attempts <= 1;
    let jobs = yard.jobs()?;
    same(&format!("{jobs:?}"), jobs.iter().all(whole), true)?;
    same("exit code", running.terminate()?, Some(0))
}
