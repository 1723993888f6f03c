//! The `leasehold` command. Owns the arguments and the exit code; what a command does stands in
//! the module of its name.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use leasehold_cli::config::command as config;
use leasehold_cli::failure::{Fatal, print};
use leasehold_cli::{bench, conformance, manual, operate, role, variables};

/// Durable jobs in the database you already have.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the configuration breaks a rule,
/// 4 what is asked for is not there, or not allowed as things are, 5 verify found broken rules,
/// 6 jobs were given up in a run with --once.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, args_conflicts_with_subcommands = true)]
#[command(after_long_help = variables::help())]
struct Arguments {
    #[command(flatten)]
    role: role::Arguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures enqueueing, draining and pick-up on a database of yours.
    Bench(bench::Arguments),
    /// Plays the conformance suite beside a database of yours, and writes a report (JUnit and HTML).
    Conformance(conformance::Arguments),
    /// Checks a configuration, or shows it.
    Config(config::Arguments),
    #[command(flatten)]
    Operate(operate::Command),
    /// Prints a script that completes this command's arguments.
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Prints the manual page, with every command and its options.
    Man,
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            leasehold_cli::failure::tell(format!("leasehold: no threads: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run());
    // A thread that waits for a locked file, say, keeps nobody waiting for it: the end rolls back what it began.
    runtime.shutdown_background();
    code
}

async fn run() -> ExitCode {
    if let Some(worked) = bench::workload::child::work_if_asked().await {
        return exit(worked.map_err(Fatal::from));
    }
    let arguments = Arguments::parse();
    exit(match (arguments.command, arguments.role.role) {
        (Some(Command::Bench(arguments)), _) => bench::run(arguments).await.map_err(Fatal::from),
        (Some(Command::Conformance(arguments)), _) => conformance::run(arguments).await,
        (Some(Command::Config(arguments)), _) => config::run(arguments),
        (Some(Command::Operate(command)), _) => operate::run(command).await,
        (Some(Command::Completions { shell }), _) => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "leasehold", &mut script);
            print(&script).map_err(Fatal::from)
        }
        (Some(Command::Man), _) => print_manual(),
        (None, Some(role)) => role::run(role, &arguments.role).await,
        (None, None) => {
            let _ = Arguments::command().print_help();
            return ExitCode::from(2);
        }
    })
}

fn print_manual() -> Result<(), Fatal> {
    let unmade = |error: std::io::Error| {
        leasehold::Error::new(leasehold::ErrorKind::Unavailable, "print", error.to_string())
    };
    let page = manual::page(Arguments::command()).map_err(unmade)?;
    Ok(print(&page)?)
}

fn exit(done: Result<(), Fatal>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            leasehold_cli::failure::tell(format!("leasehold: {error}"));
            error.code()
        }
    }
}
