//! Owns the schedules on this engine: what two and three sessions on one file do, in every order that
//! its one write lock leaves open.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "it is a test, and prints figures"
)]

mod ground;
mod place;

use std::sync::Arc;

use ground::File;
use leasehold_conformance::schedule::{Ground, test};

/// Proves: WQ-3, WQ-7, WQ-8, WQ-9, PAR-1, GLO-3
fn main() {
    test::conclude("sqlite", true, |name| Ok(Arc::new(File::new(name)) as Arc<dyn Ground>));
}
