//! What a signal meets: a schema that is being made, a claim that is out, a store that is away. The process ends all the
//! same, and well.

use std::time::{Duration, Instant};

use leasehold::State;
use leasehold_conformance::faults::proxy::Proxy;
use libtest_mimic::Failed;

use super::yard::{Held, Running, Yard, same};

/// Longer than a process takes to end, on a slow machine too, and shorter than an engine waits for a lock.
const SOON: Duration = Duration::from_secs(20);

/// Somebody else is at the schema, and stays at it.
///
/// Proves: CLI-1, WQ-20
pub(crate) fn a_stop_while_the_schema_is_made_is_prompt(yard: &Yard) -> Result<(), Failed> {
    yard.configure(&["true"], "")?;
    let held = yard.hold(include_str!("hold_schema.sql"))?;
    let mut running = yard.start(&["--role=worker"])?;
    yard.until("it waits for the schema", |yard| held.is_waited_for(yard, &running))?;
    ends_soon(yard, &mut running)?;
    held.release(yard)
}

/// The claim is sent before the signal and answered after it: what it took is given back, and its attempts with it.
///
/// Proves: WQ-20, WQ-19
pub(crate) fn a_claim_that_is_out_is_given_back(yard: &Yard) -> Result<(), Failed> {
    let begun = yard.beside("begun").display().to_string();
    yard.configure(
        &["touch", &begun],
        "worker: max_retries: 0
         worker: grace: 60s",
    )?;
    for number in 0..8 {
        yard.put(number.to_string(), "x")?;
    }
    yard.run(&["--role=producer", "--once"])?;
    let held = yard.hold(include_str!("hold_jobs.sql"))?;
    let mut running = yard.start(&["--role=worker"])?;
    yard.until("it waits for the jobs", |yard| held.is_waited_for(yard, &running))?;
    running.send("TERM")?;
    yard.until("it has heard", |yard| Ok(yard.log().contains("asked to end")))?;
    held.release(yard)?;
    let code = running.end()?;
    same(&format!("exit code\n{}", yard.log()), code, Some(0))?;
    for job in yard.jobs()? {
        let is_whole = job.state == State::Waiting && job.attempts == 0 && job.worker.is_none();
        same(&format!("{job:?}"), is_whole, true)?;
    }
    same("a command ran", yard.beside("begun").exists(), false)
}

/// The server is gone, or nobody else gets the file: an idle worker does not wait for it.
///
/// Proves: CLI-1, WQ-20
pub(crate) fn a_stop_while_the_store_is_away_is_prompt(yard: &Yard) -> Result<(), Failed> {
    yard.configure(&["true"], "worker: grace: 500ms")?;
    yard.put("file", "x")?;
    yard.run(&["--role=producer", "--once"])?;
    let Some(url) = yard.server_url() else {
        let mut running = yard.start(&["--role=worker"])?;
        yard.until("it works", |yard| Ok(yard.succeeded()? == 1))?;
        let held = yard.hold("")?;
        yard.until("it waits for the file", |yard| held.is_waited_for(yard, &running))?;
        ends_soon(yard, &mut running)?;
        return held.release(yard);
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let proxy = runtime.block_on(Proxy::before(&url))?;
    let log = std::fs::File::create(yard.beside("log"))?;
    let mut command = yard.command(&["--role=worker"]);
    let mut running = Running::of(command.env("STORE_URL", proxy.url()).stderr(log).spawn()?);
    yard.until("it works", |yard| Ok(yard.succeeded()? == 1))?;
    drop(proxy);
    yard.until("it looks for the server", |yard| Ok(yard.log().contains("claim failed")))?;
    ends_soon(yard, &mut running)
}

fn ends_soon(yard: &Yard, running: &mut Running) -> Result<(), Failed> {
    let asked = Instant::now();
    let code = running.terminate()?;
    let took = asked.elapsed();
    same(&format!("exit code\n{}", yard.log()), code, Some(0))?;
    same(&format!("{took:?} is soon"), took < SOON, true)
}

impl Held {
    /// Whether the process has come to where it waits.
    fn is_waited_for(&self, yard: &Yard, running: &Running) -> Result<bool, Failed> {
        match self {
            // Nothing tells that a process waits for a file; that it has it open is all there is to see.
            Self::File(_) => Ok(running.has_open(&yard.beside("jobs.db"))),
            Self::Server(client) => yard.waits_for(client),
        }
    }
}
