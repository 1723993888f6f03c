//! Owns the crash hooks: numbered places before and after every storage step at which a test ends
//! the process; and the faults: numbered steps that a test lets fail with a code of the engine's.
//! Compiled only with the feature `failpoints`; never in a release.

mod session;

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

pub use session::{Session, Step};

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

static STEPS: AtomicU64 = AtomicU64::new(0);
static FAULT_AT: AtomicU64 = AtomicU64::new(0);
static FAULT: AtomicI32 = AtomicI32::new(0);

/// Lets the `n`-th storage step from now on fail with an engine's code; 0 switches it off.
pub fn arm_fault(n: u64, code: i32) {
    STEPS.store(0, Ordering::SeqCst);
    FAULT.store(code, Ordering::SeqCst);
    FAULT_AT.store(n, Ordering::SeqCst);
}

/// How many storage steps there were since the last [`arm_fault`].
pub fn steps() -> u64 {
    STEPS.load(Ordering::SeqCst)
}

/// Begins one storage step; the code that it is to fail with when its turn has come.
pub fn fault() -> Option<i32> {
    let step = STEPS.fetch_add(1, Ordering::SeqCst) + 1;
    (step == FAULT_AT.load(Ordering::SeqCst)).then(|| FAULT.load(Ordering::SeqCst))
}
