//! Owns sessions whose storage steps wait for leave, so that a test decides what comes after what.
//! Refuses to know what a step does, and which order is a good one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

thread_local! {
    static CURRENT: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// One session under a test's hand; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Session(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    steps: Mutex<Steps>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Steps {
    tickets: u64,
    /// Those that wait for leave, in the order in which they came.
    waiting: VecDeque<(u64, &'static str)>,
    /// Those that have leave and are not over.
    running: usize,
    /// Whether every step has leave.
    is_free: bool,
    /// Whether a task of the session is under way.
    is_busy: bool,
    wakers: Vec<Waker>,
}

impl Steps {
    fn is_still(&self) -> bool {
        self.running == 0 && (!self.waiting.is_empty() || !self.is_busy)
    }
}

impl Session {
    /// A session that asks for leave before each step.
    pub fn new() -> Self {
        Self::default()
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Steps) -> T) -> T {
        let (done, wakers) = {
            let mut steps = self.steps();
            let done = change(&mut steps);
            (done, std::mem::take(&mut steps.wakers))
        };
        self.0.moved.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        done
    }

    /// Makes this thread the session's for good.
    pub fn enter(&self) {
        CURRENT.replace(Some(self.clone()));
    }

    /// Runs a task as the session's, on whichever threads.
    pub async fn run<T>(&self, task: impl Future<Output = T>) -> T {
        self.begin();
        let mut task = pin!(task);
        let answer = std::future::poll_fn(|cx| {
            let before = CURRENT.replace(Some(self.clone()));
            let polled = task.as_mut().poll(cx);
            CURRENT.replace(before);
            polled
        });
        let answer = answer.await;
        self.end();
        answer
    }

    /// Says that a task of the session is under way.
    pub fn begin(&self) {
        self.change(|steps| steps.is_busy = true);
    }

    /// Says that the session's task is over.
    pub fn end(&self) {
        self.change(|steps| steps.is_busy = false);
    }

    /// Lets every step pass, from now on or no longer.
    pub fn set_free(&self, is_free: bool) {
        self.change(|steps| {
            steps.is_free = is_free;
            if is_free {
                steps.running += steps.waiting.len();
                steps.waiting.clear();
            }
        });
    }

    /// Gives leave to the step that waits the longest; its name.
    pub fn allow(&self) -> Option<&'static str> {
        self.change(|steps| {
            let (_, name) = steps.waiting.pop_front()?;
            steps.running += 1;
            Some(name)
        })
    }

    /// The step that would get leave next.
    pub fn next(&self) -> Option<&'static str> {
        self.steps().waiting.front().map(|(_, name)| *name)
    }

    /// How many steps wait for leave.
    pub fn waiting(&self) -> usize {
        self.steps().waiting.len()
    }

    /// Whether its task is over.
    pub fn is_over(&self) -> bool {
        !self.steps().is_busy
    }

    /// Whether no step is under way, and either one waits for leave or the task is over.
    pub fn is_still(&self) -> bool {
        self.steps().is_still()
    }

    /// Waits until nothing is under way.
    pub async fn still(&self) {
        std::future::poll_fn(|cx| {
            let mut steps = self.steps();
            if steps.is_still() {
                return Poll::Ready(());
            }
            steps.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits in this thread until nothing is under way; whether that came in time.
    pub fn wait_still(&self, longest: Duration) -> bool {
        let waited =
            self.0.moved.wait_timeout_while(self.steps(), longest, |steps| !steps.is_still());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_still()
    }
}

/// One storage step of a session; it is over when this is dropped.
#[derive(Debug)]
pub struct Step {
    session: Session,
    ticket: u64,
}

impl Step {
    /// Asks for leave; `None` where the step is no session's.
    pub fn begin(name: &'static str) -> Option<Self> {
        let session = CURRENT.with_borrow(Clone::clone)?;
        let ticket = session.change(|steps| {
            steps.tickets += 1;
            if steps.is_free {
                steps.running += 1;
            } else {
                steps.waiting.push_back((steps.tickets, name));
            }
            steps.tickets
        });
        Some(Self { session, ticket })
    }

    fn waits(&self, steps: &Steps) -> bool {
        steps.waiting.iter().any(|(ticket, _)| *ticket == self.ticket)
    }

    /// Waits in this thread until it has leave.
    pub fn block(&self) {
        let moved = &self.session.0.moved;
        let had = moved.wait_while(self.session.steps(), |steps| self.waits(steps));
        drop(had.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Waits until the step has leave.
impl Future for &Step {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut steps = self.session.steps();
        if !self.waits(&steps) {
            return Poll::Ready(());
        }
        steps.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.session.change(|steps| {
            let before = steps.waiting.len();
            steps.waiting.retain(|(ticket, _)| *ticket != self.ticket);
            if steps.waiting.len() == before {
                steps.running = steps.running.saturating_sub(1);
            }
        });
    }
}
