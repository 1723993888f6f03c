//! Owns the producer: scans a folder again and again and enqueues a job for each version of a file
//! that has none. Refuses to know what is done with a file.

mod scan;
mod watch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leasehold::metrics::Metrics;
use leasehold::{
    BucketName, CancellationToken, Error, ErrorKind, IdempotencyKey, JobFilter, NewJob, Paging,
    Query, QueueName, Rate, Result, Store, Take, Taken,
};

use self::watch::Watch;
use super::Process;
use super::file_job::{self, Version};
use crate::clock;
use crate::config::{Config, Problems};

/// How many jobs go into one transaction.
const BATCH: usize = 500;

/// Checks what only the folder itself can say.
///
/// # Errors
/// A folder that is none or cannot be listed, a glob that is not understood.
pub(super) fn check(config: &Config) -> Result<(), Problems> {
    scan::walk(config)?.listed(config)
}

/// Scans until `shutdown`, with a pause between two scans.
///
/// # Errors
/// `Invalid` and other errors that another scan would meet again.
pub(super) async fn run(process: &Process) -> Result<()> {
    let (config, shutdown) = (&process.config, &process.shutdown);
    let mut producer = Producer::new(process)?;
    // Before the first scan, so that no change lies between the two.
    let mut watch = match config.flag("producer.watch") {
        true => Watch::over(scan::walk(config).map_err(refused)?.folder().to_owned()).await,
        false => Watch::none(),
    };
    while !shutdown.is_cancelled() {
        let began = clock::steady();
        match producer.scan().await {
            Ok(()) => {}
            Err(error) if error.is_retryable() => {
                crate::log_line!(warn, error = error, "a scan was cut short")
            }
            Err(error) => return Err(error),
        }
        let pause = config.duration("producer.scan_interval");
        tokio::select! {
            () = watch.wait(pause, began.elapsed()) => {}
            () = shutdown.cancelled() => {}
        }
    }
    Ok(())
}

fn refused(why: Problems) -> Error {
    Error::new(ErrorKind::Invalid, "scan", why.to_string())
}

/// Scans once.
///
/// # Errors
/// As the store's enqueue.
pub(super) async fn scan_once(process: &Process) -> Result<()> {
    Producer::new(process)?.scan().await
}

struct Producer<'a> {
    config: &'a Config,
    store: Arc<dyn Store>,
    counts: Arc<Metrics>,
    shutdown: CancellationToken,
    queues: HashMap<String, QueueName>,
    /// The version of each file that has its job, so that a later scan asks nothing about it.
    known: HashMap<PathBuf, Version>,
}

impl<'a> Producer<'a> {
    fn new(process: &'a Process) -> Result<Self> {
        let Process { config, store, counts, shutdown, .. } = process;
        let queues = config
            .map("worker.queues")
            .iter()
            .map(|(name, queue)| Ok((name.clone(), QueueName::new(queue)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            config,
            store: store.clone(),
            counts: counts.clone(),
            shutdown: shutdown.clone(),
            queues,
            known: HashMap::new(),
        })
    }

    async fn scan(&mut self) -> Result<()> {
        let walk = scan::walk(self.config).map_err(refused)?;
        let mut batch = Vec::new();
        let mut seen = HashSet::new();
        for version in walk.versions() {
            if self.shutdown.is_cancelled() {
                return Ok(());
            }
            seen.insert(version.path.clone());
            if self.known.get(&version.path) == Some(&version) {
                continue;
            }
            batch.push(version);
            if batch.len() == BATCH {
                self.enqueue(std::mem::take(&mut batch)).await?;
            }
        }
        self.enqueue(batch).await?;
        // What is gone needs no memory; when it comes back its key is still known to the store.
        self.known.retain(|path, _| seen.contains(path));
        Ok(())
    }

    async fn enqueue(&mut self, versions: Vec<Version>) -> Result<()> {
        let mut jobs = Vec::new();
        for version in &versions {
            if self.has_job(version.key()?).await? {
                self.known.insert(version.path.clone(), version.clone());
            } else {
                jobs.push((version, self.job(version)?));
            }
        }
        for part in jobs.chunks(self.grant()) {
            if !self.wait_for_tokens(part.len()).await? {
                return Ok(());
            }
            let batch: Vec<NewJob> = part.iter().map(|(_, job)| job.clone()).collect();
            let answers = self.store.enqueue(batch).await?;
            for ((version, job), answer) in part.iter().zip(answers) {
                match answer {
                    Ok(enqueued) if enqueued.is_new() => self.counts.produced(&job.queue, 1),
                    Ok(_) => {}
                    // Another producer, or an earlier run, gave this version its job.
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(error),
                }
                self.known.insert(version.path.clone(), (*version).clone());
            }
        }
        Ok(())
    }

    async fn has_job(&self, key: IdempotencyKey) -> Result<bool> {
        let filter = JobFilter::new().key((file_job::scope()?, key));
        match self.store.find(Query::Jobs(filter, Paging::first(1))).await {
            Ok(found) => Ok(!found.items.is_empty()),
            // There is one, and one that cannot be read must not keep the other files waiting.
            Err(error) if error.damaged_job().is_some() => {
                crate::log_line!(error, error = error, "the job of a file cannot be read");
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn job(&self, version: &Version) -> Result<NewJob> {
        let priority = self.priority(&version.path);
        let queue = self.queues.get(priority).cloned();
        let queue =
            queue.ok_or_else(|| Error::invalid("scan", format!("{priority} has no queue")))?;
        let retries = u16::try_from(self.config.int("worker.max_retries")).unwrap_or(u16::MAX - 1);
        version.job(priority, queue, retries.saturating_add(1), clock::wall())
    }

    fn priority(&self, path: &Path) -> &'a str {
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let urgent = self.config.list("producer.high_priority_exts");
        let first = self.config.list("worker.priorities").first();
        match first {
            Some(first) if urgent.iter().any(|ext| name.ends_with(&ext.to_lowercase())) => first,
            _ => self.config.text("producer.default_priority"),
        }
    }

    /// How many jobs may go at once: the second's worth of the limit, at most a batch.
    fn grant(&self) -> usize {
        match usize::try_from(self.config.int("producer.rate_limit_per_sec")) {
            Ok(rate) if rate > 0 => rate.min(BATCH),
            _ => BATCH,
        }
    }

    /// Waits for tokens of the bucket that all producers share; `false` when asked to end.
    async fn wait_for_tokens(&self, jobs: usize) -> Result<bool> {
        let rate =
            u32::try_from(self.config.int("producer.rate_limit_per_sec")).unwrap_or(u32::MAX);
        let bucket = BucketName::new(self.config.text("producer.rate_limit_key"))?;
        let tokens = u32::try_from(jobs).unwrap_or(u32::MAX);
        while rate > 0 && !self.shutdown.is_cancelled() {
            let wish = Take::new(bucket.clone(), Rate::per_second(rate), rate).tokens(tokens);
            match self.store.records().take(wish).await? {
                Taken::Granted => return Ok(true),
                Taken::Wait(pause) => self.pause(pause).await,
            }
        }
        Ok(!self.shutdown.is_cancelled())
    }

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause.max(Duration::from_millis(1))) => {}
            () = self.shutdown.cancelled() => {}
        }
    }
}
