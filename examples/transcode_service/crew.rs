//! Owns the worker processes of a service: as many as wished, started again when they die, and ended with it.
//! Knows no jobs; what a dead one had in hand is another's once its lease is over.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::io;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use leasehold::CancellationToken;
use tokio::process::Child;

/// How long it waits before a dead process is started again, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long worker processes may take to give back what they have in hand.
const GRACE: Duration = Duration::from_secs(30);

/// Keeps so many processes going until `shutdown`, then ends them by closing their input; those that take too
/// long are killed. What dies again and again is started at ever longer intervals.
pub(crate) async fn keep(
    processes: u32,
    start: impl Fn() -> io::Result<Child>,
    shutdown: &CancellationToken,
) {
    join_all((0..processes).map(|_| keep_one(&start, shutdown))).await;
}

async fn keep_one(start: &impl Fn() -> io::Result<Child>, shutdown: &CancellationToken) {
    let (first, longest) = WAITS;
    let mut wait = first;
    while !shutdown.is_cancelled() {
        let begun = Instant::now();
        let how = match start() {
            Ok(child) => match watch(child, shutdown).await {
                Some(how) => how,
                None => return,
            },
            Err(error) => format!("was not started: {error}"),
        };
        // One that worked for long begins anew.
        wait = if begun.elapsed() > longest { first } else { wait };
        println!("a worker process {how}; another is started in {} s", wait.as_secs());
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(longest);
    }
}

/// Waits for the end of a process, and tells how it came; `None` where it was told to.
async fn watch(mut child: Child, shutdown: &CancellationToken) -> Option<String> {
    // Waiting would close it.
    let input = child.stdin.take();
    tokio::select! {
        ended = child.wait() => {
            return Some(ended.map_or_else(|error| error.to_string(), |how| format!("ended: {how}")));
        }
        () = shutdown.cancelled() => {}
    }
    drop(input);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        println!("a worker process took too long, and is killed");
    }
    None
}

/// For a worker process: waits until the process that started it has ended, or ends it.
pub(crate) async fn orphaned() {
    let (mut input, mut sink) = (tokio::io::stdin(), tokio::io::sink());
    let _either_way = tokio::io::copy(&mut input, &mut sink).await;
}
