//! The `leasehold` command. Owns the arguments and the exit code; what a command does stands in
//! the module of its name.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use leasehold_cli::bench;

/// Durable jobs in the database you already have.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures enqueueing, draining and pick-up on a database of yours.
    Bench(bench::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    if let Some(worked) = bench::workload::child::work_if_asked().await {
        return exit(worked);
    }
    let done = match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(arguments).await,
    };
    exit(done)
}

fn exit(done: leasehold::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leasehold: {error}");
            ExitCode::FAILURE
        }
    }
}
