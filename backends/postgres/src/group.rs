//! Owns the gathering of small enqueues that come at the same time: while a few are under way the others
//! wait in line, and the next transaction takes all of them. A call that comes alone never waits. Refuses
//! to know what an enqueue does; what one call is told does not depend on who else was in its group, and
//! a call that has to wait for somebody's open transaction keeps the line waiting for a moment at most.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{Enqueued, Error, ErrorKind, NewJob, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::pool::Lane;
use crate::store::PostgresStore;

/// How many small enqueues are under way at once.
const UNDER_WAY: usize = 2;
/// After how long a transaction counts as one that waits for somebody, and the line goes on.
const PATIENCE: Duration = Duration::from_millis(200);
/// The most jobs of a call that waits in line, and of a transaction made of such calls.
const CALL_MAX: usize = 100;
const GROUP_MAX: usize = 1_000;
/// The most bytes of payloads of such a transaction, where it has more than one call.
const BYTES_MAX: usize = 4 << 20;

type Answers = Result<Vec<Result<Enqueued>>>;

/// A call in line.
#[derive(Debug)]
struct Call {
    jobs: Vec<NewJob>,
    answer: oneshot::Sender<Answers>,
}

/// The line of one store.
#[derive(Debug)]
pub(crate) struct Line {
    waiting: Mutex<Waiting>,
    /// Where groups run, wherever the call before them was dropped.
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: Vec<Call>,
    under_way: usize,
}

impl Line {
    /// Makes the line of a store that is being opened.
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), runtime: Handle::current() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the calls of the next transaction; `None` when nobody waits, and a place is free then.
    fn next(&self) -> Option<Vec<Call>> {
        let mut waiting = self.lock();
        let (mut jobs, mut bytes) = (0, 0);
        let fits = |call: &&Call| {
            jobs += call.jobs.len();
            bytes += call.jobs.iter().map(|job| job.payload.as_str().len()).sum::<usize>();
            jobs <= GROUP_MAX && bytes <= BYTES_MAX
        };
        let calls = waiting.calls.iter().take_while(fits).count();
        let calls = calls.max(1).min(waiting.calls.len());
        if calls == 0 {
            waiting.under_way -= 1;
            return None;
        }
        Some(waiting.calls.drain(..calls).collect())
    }
}

/// A place among those under way. Whoever leaves one, cut short or not, has the line go on.
struct Place(PostgresStore);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(calls) = self.0.line().next() {
            self.0.line().runtime.spawn(self.0.clone().work_off(calls));
        }
    }
}

impl Place {
    /// Runs to the end, but leaves the place when that takes long.
    async fn while_running<T>(self, running: impl Future<Output = T>) -> T {
        let mut running = pin!(running);
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut running).await {
            return done;
        }
        drop(self);
        running.await
    }
}

/// Whether a job may go with others: one with a key may have to wait for the transaction of whoever has
/// sent that key too, one that is to run after others for whoever has locked those, and then all of its
/// group would.
fn goes_with_others(job: &NewJob) -> bool {
    job.key.is_none() && !job.rerun && job.after.is_empty()
}

impl PostgresStore {
    /// Enqueues, together with others where many come at once.
    pub(crate) async fn enqueue_grouped(&self, jobs: Vec<NewJob>) -> Answers {
        let limits = &self.shared().limits;
        let fits = |job: &NewJob| goes_with_others(job) && job.check(limits).is_ok();
        if jobs.len() > CALL_MAX || !jobs.iter().all(fits) {
            return self.add(&jobs).await;
        }
        let told = {
            let mut waiting = self.line().lock();
            if waiting.under_way < UNDER_WAY {
                waiting.under_way += 1;
                None
            } else {
                let (answer, told) = oneshot::channel();
                waiting.calls.push(Call { jobs: jobs.clone(), answer });
                Some(told)
            }
        };
        let Some(told) = told else {
            return Place(self.clone()).while_running(self.add(&jobs)).await;
        };
        told.await.unwrap_or_else(|_| {
            let why = "the transaction was dropped; repeat the call";
            Err(Error::new(ErrorKind::OutcomeUnknown, "enqueue", why))
        })
    }

    /// Enqueues in one transaction.
    async fn add(&self, jobs: &[NewJob]) -> Answers {
        match self.put(jobs).await? {
            Some(answers) => Ok(answers),
            None => self.run(Lane::Shared, jobs).await,
        }
    }

    /// Runs a group; leaving its place has the next one run.
    async fn work_off(self, calls: Vec<Call>) {
        Place(self.clone()).while_running(self.enqueue_all(calls)).await;
    }

    async fn enqueue_all(&self, calls: Vec<Call>) {
        let jobs: Vec<NewJob> = calls.iter().flat_map(|call| call.jobs.iter().cloned()).collect();
        match self.add(&jobs).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for call in calls {
                    let own = answers.by_ref().take(call.jobs.len()).collect();
                    let _gone = call.answer.send(Ok(own));
                }
            }
            Err(error) => self.tell(calls, error).await,
        }
    }

    /// Tells the calls of a group that failed. What one did wrong is nobody else's: each is run by
    /// itself then.
    async fn tell(&self, calls: Vec<Call>, error: Error) {
        let own =
            matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Corrupt | ErrorKind::Conflict);
        let (kind, why, error) = (error.kind(), error.message().to_owned(), Arc::new(error));
        for call in calls {
            let answer = if own {
                self.add(&call.jobs).await
            } else {
                Err(Error::new(kind, "enqueue", why.clone()).with_source(Arc::clone(&error)))
            };
            let _gone = call.answer.send(answer);
        }
    }
}
