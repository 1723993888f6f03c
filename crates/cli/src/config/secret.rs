//! Owns where a secret may come from: the environment or a file that only its owner and group can
//! read. Never shows one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

/// A secret and where it came from.
#[derive(Clone)]
pub struct Secret {
    text: SecretString,
    source: String,
}

/// The longest secret file that is read, in bytes.
const BYTES_MAX: u64 = 65_536;

impl Secret {
    pub(super) fn new(text: String, source: String) -> Self {
        Self { text: SecretString::from(text), source }
    }

    /// Gives the secret itself, for the one call that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// Says where it came from, such as `env:NAME`.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Follows `env:NAME` or `file:PATH`.
    ///
    /// # Errors
    /// The rule that is broken; never the text.
    pub(super) fn follow(
        reference: &str,
        environment: &[(String, String)],
    ) -> Result<Self, String> {
        if let Some(name) = reference.strip_prefix("env:") {
            return match environment.iter().find(|(have, _)| have == name) {
                Some((_, text)) if !text.is_empty() => {
                    Ok(Self::new(text.clone(), reference.to_owned()))
                }
                Some(_) => Err(format!("the environment variable {name} is empty")),
                None => Err(format!("the environment variable {name} is not set")),
            };
        }
        if let Some(path) = reference.strip_prefix("file:") {
            let text = read(Path::new(path)).map_err(|why| format!("the file {path} {why}"))?;
            return Ok(Self::new(text, reference.to_owned()));
        }
        Err("a secret does not stand in a file of configuration: write env:NAME for an environment \
             variable, or file:PATH for a mounted file"
            .to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(from {})", self.source)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    let facts = file.metadata().map_err(|error| format!("cannot be looked at: {error}"))?;
    if !facts.is_file() {
        return Err("is no regular file".to_owned());
    }
    check_mode(&facts)?;
    if facts.len() > BYTES_MAX {
        return Err(format!("has {} bytes, at most {BYTES_MAX} are read", facts.len()));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| format!("cannot be read as text: {error}"))?;
    let end = text.trim_end_matches(['\n', '\r']).len();
    text.truncate(end);
    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text) }
}

#[cfg(unix)]
fn check_mode(facts: &std::fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = facts.permissions().mode() & 0o777;
    if mode & 0o026 == 0 {
        return Ok(());
    }
    Err(format!(
        "has mode {mode:04o}: others must not read or write it, nor its group write it; set 0440 or \
         0400 (on Kubernetes `defaultMode: 0440` of the volume)"
    ))
}

#[cfg(not(unix))]
fn check_mode(_facts: &std::fs::Metadata) -> Result<(), String> {
    Ok(())
}
