//! What a run with `--once` waits for, and what it leaves.

use std::time::Duration;

use leasehold::{
    ClaimRequest, Control, JobKind, Json, NewJob, QueueName, QueueSettings, State, WorkerId,
};
use libtest_mimic::Failed;

use super::yard::{Yard, same};

fn job(kind: &str, queue: &str) -> leasehold::Result<NewJob> {
    Ok(NewJob::new(JobKind::new(kind)?, Json::parse("1")?).queue(QueueName::new(queue)?))
}

/// Jobs of another kind in its queues, waiting, due later and leased, are no business of the run.
///
/// Proves: CLI-1
pub(crate) fn jobs_of_another_kind_keep_no_run_waiting(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("")?;
    yard.put("file", "x")?;
    yard.run(&["--role=producer", "--once"])?;
    yard.with_store(async |store| {
        store.enqueue(vec![job("another", "high")?]).await?;
        let claim = ClaimRequest::new(WorkerId::new(), [QueueName::new("high")?]);
        assert_eq!(store.claim(claim).await?.len(), 1);
        let later = job("another", "low")?.delay(Duration::from_secs(3_600));
        store.enqueue(vec![job("another", "low")?, later]).await?;
        Ok(())
    })?;
    yard.run(&["--role=worker", "--once"])?;
    same("files done", yard.done().len(), 1)?;
    let jobs = yard.jobs()?;
    let left = jobs.iter().filter(|job| job.state == State::Waiting).count();
    same("jobs, of which wait", (jobs.len(), left), (4, 2))
}

/// What an operator keeps back is left, and the log says so; what is due far later is left as well.
///
/// Proves: CLI-1
pub(crate) fn what_nobody_may_claim_is_left(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("producer: high_priority_exts: [.now, .zip]")?;
    yard.put("kept.txt", "x")?;
    yard.run(&["--role=producer", "--once"])?;
    yard.run(&["queues", "pause", "low"])?;
    yard.put("done.now", "x")?;
    let told = |out: std::process::Output| {
        let log = String::from_utf8_lossy(&out.stderr).into_owned();
        log.lines().filter(|line| line.contains("a limit is 0") && line.contains("\"low\"")).count()
    };
    same("told", told(yard.run(&["--role=all", "--once"])?), 1)?;
    same("files done", yard.done().len(), 1)?;
    yard.run(&["queues", "resume", "low"])?;
    let limit = |limit| {
        let settings = QueueSettings::new().limit(limit);
        let control = Control::SetQueue(QueueName::new("low")?, settings);
        yard.with_store(async |store| store.control(control).await)
    };
    limit(Some(0))?;
    same("told", told(yard.run(&["--role=worker", "--once"])?), 1)?;
    same("files done", yard.done().len(), 1)?;
    limit(None)?;
    let later = job("file", "low")?.delay(Duration::from_secs(3_600));
    yard.with_store(async |store| store.enqueue(vec![later]).await)?;
    same("told", told(yard.run(&["--role=worker", "--once"])?), 0)?;
    same("files done", yard.done().len(), 2)
}
