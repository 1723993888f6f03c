//! Owns the schedules on this engine: what two and three sessions do to each other, statement by
//! statement, in every order that its locks leave open.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "it is a test, and prints figures"
)]

mod ground;

use std::sync::Arc;

use ground::Server;
use leasehold_conformance::schedule::{Ground, test};

/// Proves: WQ-3, WQ-7, WQ-8, WQ-9, PAR-1, GLO-3
fn main() {
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL");
    let is_here = server.is_ok();
    test::conclude("postgres", is_here, move |name| {
        let server = server.clone().map_err(|_| "LEASEHOLD_TEST_POSTGRES_URL names no server")?;
        Ok(Arc::new(Server::new(&server, name)) as Arc<dyn Ground>)
    });
}
