//! Owns `leasehold config`: checks a configuration, or shows it. Refuses to know its keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{defaults, environment, json, load, show_yaml};
use crate::failure::Fatal;
use crate::role::{self, Role};

/// Checks a configuration, or shows it.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Says whether a role would start: reports every problem with its place, or prints nothing.
    ///
    /// Looks at what the role looks at when it starts: the file and the environment, the folder and the
    /// globs, the program, the URL of the store. Opens no store.
    Check {
        /// The file; a missing one means the defaults
        #[arg(long, value_name = "PATH")]
        config: Option<PathBuf>,
        /// The role that is to start
        #[arg(long, default_value = "all")]
        role: Role,
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
        Action::Check { config, role } => {
            let loaded = load(config.as_deref(), &environment())?;
            for note in &loaded.notes {
                crate::failure::tell(format!("note: {note}"));
            }
            role::check(role, &loaded.config)?;
            String::new()
        }
        Action::Show { defaults: true, .. } => defaults(),
        Action::Show { config, json: as_json, .. } => {
            let loaded = load(config.as_deref(), &environment())?;
            if as_json { json(&loaded.config) } else { show_yaml(&loaded.config) }
        }
    };
    Ok(crate::failure::print(text.as_bytes())?)
}
