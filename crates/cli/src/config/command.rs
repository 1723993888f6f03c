//! Owns `leasehold config`: checks a configuration, or shows it. Refuses to know its keys.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold::{Error, ErrorKind};

use super::{defaults, environment, json, load, show_yaml};
use crate::failure::Fatal;

/// Checks a configuration, or shows it.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Reads the file and the environment, and reports every problem with its place.
    Check {
        /// The file; a missing one means the defaults
        #[arg(long, value_name = "PATH")]
        config: Option<PathBuf>,
    },
    /// Shows every key with its value and where the value comes from; secrets as stars.
    Show {
        /// The file; a missing one means the defaults
        #[arg(long, value_name = "PATH")]
        config: Option<PathBuf>,
        /// Print a file with every key at its default instead, and what each does
        #[arg(long, conflicts_with_all = ["config", "json"])]
        defaults: bool,
        /// For programs
        #[arg(long)]
        json: bool,
    },
}

/// Does what the arguments say.
///
/// # Errors
/// The problems of the configuration.
pub fn run(arguments: Arguments) -> Result<(), Fatal> {
    let text = match arguments.action {
        Action::Check { config } => {
            let loaded = load(config.as_deref(), &environment())?;
            for note in &loaded.notes {
                crate::failure::tell(format!("note: {note}"));
            }
            "the configuration is fine\n".to_owned()
        }
        Action::Show { defaults: true, .. } => defaults(),
        Action::Show { config, json: as_json, .. } => {
            let loaded = load(config.as_deref(), &environment())?;
            if as_json { json(&loaded.config) } else { show_yaml(&loaded.config) }
        }
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(|error| Error::new(ErrorKind::Unavailable, "print", error.to_string()).into())
}
