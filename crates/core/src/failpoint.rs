//! Owns the crash hooks: numbered places before and after every storage step at which a test ends
//! the process. Compiled only with the feature `failpoints`; never in a release.

use std::sync::atomic::{AtomicU64, Ordering};

static PASSED: AtomicU64 = AtomicU64::new(0);
static ABORT_AT: AtomicU64 = AtomicU64::new(0);

/// Ends the process at the `n`-th hook from now on; 0 switches it off. Resets the count.
pub fn arm(n: u64) {
    PASSED.store(0, Ordering::SeqCst);
    ABORT_AT.store(n, Ordering::SeqCst);
}

/// How many hooks were passed since the last [`arm`].
pub fn passed() -> u64 {
    PASSED.load(Ordering::SeqCst)
}

/// Passes one hook; ends the process as a crash would when its turn has come.
pub fn hit(_name: &'static str) {
    let at = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if at == ABORT_AT.load(Ordering::SeqCst) {
        std::process::abort();
    }
}
