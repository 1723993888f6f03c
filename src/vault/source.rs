//! Owns where a ring's keys come from: the environment, or files that a secret manager mounts, whose
//! mode is checked. Refuses a key that stands in a configuration file.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::error::VaultError;
use super::kek::{KEY_BYTES, KekId, KeyRing};

fn refused(why: String) -> VaultError {
    VaultError::Source(why)
}

impl KeyRing {
    /// Reads keys from an environment variable: `ID:BASE64` by commas, the first one seals.
    ///
    /// # Errors
    /// `Source` naming the variable, never its value.
    pub fn from_env(name: &str) -> Result<Self, VaultError> {
        let text = Zeroizing::new(
            std::env::var(name).map_err(|_| refused(format!("{name} is not set, or no text")))?,
        );
        Self::read(name, &text)
    }

    /// Reads keys from a text of the same form, for configurations of other origin.
    ///
    /// # Errors
    /// `Source` when it holds no keys of the form.
    pub fn from_text(text: &str) -> Result<Self, VaultError> {
        Self::read("the text", text)
    }

    fn read(name: &str, text: &str) -> Result<Self, VaultError> {
        let mut ring: Option<Self> = None;
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (id, key) = entry
                .split_once(':')
                .ok_or_else(|| refused(format!("{name} holds an entry that is not ID:BASE64")))?;
            let (id, key) = (KekId::new(id)?, decoded(name, key.as_bytes())?);
            ring = Some(match ring {
                None => Self::new(id, key)?,
                Some(ring) => ring.and(id, key)?,
            });
        }
        ring.ok_or_else(|| refused(format!("{name} holds no key")))
    }

    /// Reads keys from a folder: each file is one key, named by its id, of 32 bytes or their base64.
    ///
    /// Names that begin with a point are passed over, as secret managers make them.
    ///
    /// # Errors
    /// `Source` when a file may be read by everybody or written by others than its owner, holds no
    /// key, or the one that seals is not there.
    pub fn from_folder(folder: impl AsRef<Path>, active: KekId) -> Result<Self, VaultError> {
        let folder = folder.as_ref();
        let mut ring = Self::new(active.clone(), read(&folder.join(active.as_str()))?)?;
        let listed = |error| refused(format!("{}: {error}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(listed)? {
            let entry = entry.map_err(listed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with('.') && name != active.as_str() {
                ring = ring.and(KekId::new(name)?, read(&entry.path())?)?;
            }
        }
        Ok(ring)
    }
}

/// Reads one key file, unless its mode lets others at it.
fn read(path: &Path) -> Result<Vec<u8>, VaultError> {
    let shown = path.display();
    let failed = |error| refused(format!("{shown}: {error}"));
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(refused(format!("{shown} is no file")));
    }
    check_mode(path, &meta)?;
    let bytes = Zeroizing::new(std::fs::read(path).map_err(failed)?);
    match bytes.len() {
        KEY_BYTES => Ok(bytes.to_vec()),
        _ => decoded(&shown.to_string(), bytes.trim_ascii()),
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, meta: &std::fs::Metadata) -> Result<(), VaultError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o027 == 0 {
        return Ok(());
    }
    let why = format!("{} has mode {mode:03o}; 640 at most is allowed", path.display());
    Err(refused(why))
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), VaultError> {
    Ok(())
}

fn decoded(place: &str, text: &[u8]) -> Result<Vec<u8>, VaultError> {
    STANDARD.decode(text).map_err(|_| refused(format!("{place} holds a key that is not base64")))
}
