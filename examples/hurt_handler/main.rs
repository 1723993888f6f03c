//! Hurts the worker of a handler at each of its durable steps, and finds the handler's bug. Runs in CI.
//!
//! ```sh
//! cargo run --example hurt_handler
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

mod shop;

use std::error::Error;

use leasehold_conformance::faults::survive::survive;
use shop::{Form, Shop};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for form in [Form::Careless, Form::Careful] {
        let report = survive(&Shop::new(form)).await?;
        println!("{form:?}: hurt {} times, {} findings", report.trials, report.findings.len());
        for finding in &report.findings {
            println!("  {finding}");
        }
        if report.findings.is_empty() != (form == Form::Careful) {
            return Err("the bug was not found, or one that is not there was".into());
        }
    }
    Ok(())
}
