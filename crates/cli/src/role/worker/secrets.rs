//! Owns what this process knows to be secret, and the masking of it in what a command prints: the
//! database's password, and the variables handed to commands whose names say so.

use std::fmt;

use leasehold::sanitize::sanitize_knowing;
use secrecy::{ExposeSecret, SecretString};

use super::tail::Kept;
use crate::config::Config;

/// Parts of a variable's name that say that its value is secret.
const NAMES: [&str; 8] =
    ["PASS", "SECRET", "TOKEN", "KEY", "CREDENTIAL", "AUTH", "COOKIE", "PRIVATE"];
/// What is left of a secret where the output was cut has to be longer than this to be one.
const TORN_MIN: usize = 3;

/// Values that are masked wherever they stand.
pub(super) struct Secrets(Vec<SecretString>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    pub(super) fn of(config: &Config) -> Self {
        let says = |name: &&String| {
            let name = name.to_uppercase();
            NAMES.iter().any(|part| name.contains(part))
        };
        let handed = config.list("worker.command_env").iter().filter(says);
        let handed = handed.filter_map(|name| std::env::var(name).ok());
        let password = config.secret("store.password").map(|secret| secret.expose().to_owned());
        Self(handed.chain(password).map(SecretString::from).collect())
    }

    /// The text of an output without anything secret.
    pub(super) fn mask(&self, kept: &Kept) -> String {
        let mut text = kept.text();
        if kept.is_cut() {
            let torn = self.0.iter().filter_map(|secret| torn(&text, secret.expose_secret())).max();
            text.truncate(text.len() - torn.unwrap_or(0));
        }
        sanitize_knowing(&text, self.0.iter().map(ExposeSecret::expose_secret))
    }
}

/// How many bytes at the end of a text are the beginning of a secret.
fn torn(text: &str, secret: &str) -> Option<usize> {
    let parts = secret.char_indices().map(|(at, _)| at).filter(|at| *at > TORN_MIN);
    let is_end = |at: &usize| secret.get(..*at).is_some_and(|part| text.ends_with(part));
    parts.filter(is_end).max()
}
