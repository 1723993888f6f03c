//! Owns `leasehold config`: checks a configuration, or shows it. Refuses to know its keys.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{defaults, diagnostics, environment, json, load, show_yaml};
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
        /// The file; without one the defaults and the environment hold
        #[arg(long, value_name = "PATH")]
        config: Option<PathBuf>,
        /// The role that is to start
        #[arg(long, default_value = "all")]
        role: Role,
        /// For programs: problems and notes as JSON, also where there are none
        #[arg(long)]
        json: bool,
    },
    /// Shows every key with its value and where the value comes from; secrets as stars.
    Show {
        /// The file; without one the defaults and the environment hold
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
        Action::Check { config, role, json } => return check(config.as_deref(), role, json),
        Action::Show { defaults: true, .. } => defaults(),
        Action::Show { config, json: as_json, .. } => {
            let loaded = load(config.as_deref(), &environment())?;
            if as_json { json(&loaded.config) } else { show_yaml(&loaded.config) }
        }
    };
    Ok(crate::failure::print(text.as_bytes())?)
}

fn check(path: Option<&Path>, role: Role, as_json: bool) -> Result<(), Fatal> {
    let (notes, checked) = role::load(role, path, &environment());
    let checked = checked.map(drop);
    if as_json {
        let problems = checked.as_ref().err().map_or(&[][..], |problems| &problems.0);
        crate::failure::print(diagnostics(problems, &notes).as_bytes())?;
    } else {
        notes.iter().for_each(|note| crate::failure::tell(format!("note: {note}")));
    }
    Ok(checked?)
}
