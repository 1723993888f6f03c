//! Owns the commands about keys: the vault's wrapping keys, and the API keys of requesters. No key is
//! ever printed but a new API key, once.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use leasehold::http::ApiKeys;
use leasehold::vault::{self, KekId, KeyRing, Vault, VaultError};
use leasehold::{Actor, Error, ErrorKind, JobKind, Result, Scope, Store};
use serde_json::json;

use super::answer::Answer;

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists the vault's keys with how many secrets need each, and the API keys; which are overdue.
    List,
    /// Wraps every secret anew by the active key; may be stopped and run again.
    Rotate(Ring),
    /// Retires a key of the vault, once no secret needs it.
    Retire {
        /// The key's id
        key: String,
        #[command(flatten)]
        ring: Ring,
    },
    /// Makes an API key and prints it, this once.
    Issue {
        /// Whose key it is
        requester: String,
        /// A kind of job that it may ask for, given once for each; all where none is given
        #[arg(long)]
        kind: Vec<JobKind>,
    },
    /// Ends an API key at once.
    Revoke {
        /// The key's id
        id: String,
    },
}

impl Action {
    /// Whether it changes nothing.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::List)
    }
}

/// Where the vault's keys are.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Ring {
    /// An environment variable that holds ID:BASE64,… of which the first key seals
    #[arg(long, value_name = "NAME", conflicts_with = "folder")]
    env: Option<String>,
    /// A folder that holds one file for each key, named by its id
    #[arg(long, value_name = "PATH", requires = "active")]
    folder: Option<PathBuf>,
    /// The id of the key in the folder that seals
    #[arg(long, value_name = "ID", requires = "folder")]
    active: Option<String>,
}

const DAY_SECONDS: u64 = 24 * 3_600;
const WRAPPING: &[&str] = &["key", "secrets", "days_in_use", "overdue", "retired"];
const API: &[&str] = &["id", "requester", "kinds", "issued_at", "overdue"];

/// Does it.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action, actor: Actor) -> Result<Answer> {
    match action {
        Action::List => list(store).await,
        Action::Rotate(ring) => rotate(store, &ring).await,
        Action::Retire { key, ring } => {
            let key = KekId::new(key).map_err(refused)?;
            vault(store, &ring)?.retire(&key, actor).await.map_err(refused)?;
            Ok(Answer::facts([("retired", json!(key.as_str()))]))
        }
        Action::Issue { requester, kind } => {
            let kinds = (!kind.is_empty()).then_some(kind.as_slice());
            let requester = Scope::new(&requester)?;
            let made = ApiKeys::of(store.clone()).issue(&requester, kinds, actor).await?;
            Ok(Answer::facts([("id", json!(made.id)), ("key", json!(made.expose()))]))
        }
        Action::Revoke { id } => {
            if ApiKeys::of(store.clone()).revoke(&id, actor).await? {
                return Ok(Answer::facts([("revoked", json!(id))]));
            }
            Err(Error::new(ErrorKind::NotFound, "revoke", "no such API key").about(id))
        }
    }
}

async fn list(store: &Arc<dyn Store>) -> Result<Answer> {
    let keys = vault::key_uses(&**store).await.map_err(refused)?;
    let wrapping = keys.iter().map(|key| {
        vec![
            json!(key.kek.as_ref().map(KekId::as_str)),
            json!(key.secrets),
            json!(key.age.as_secs() / DAY_SECONDS),
            json!(key.is_overdue()),
            json!(key.retired),
        ]
    });
    let wrapping = Answer::Rows { columns: WRAPPING, rows: wrapping.collect(), next: None };
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = ApiKeys::of(store.clone()).list(after).await?;
        rows.extend(page.keys.iter().map(|key| {
            vec![
                json!(key.id),
                json!(key.requester),
                json!(key.kinds),
                json!(key.issued_at.to_string()),
                json!(key.is_overdue()),
            ]
        }));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let api = Answer::Rows { columns: API, rows, next: None };
    Ok(Answer::Parts(vec![("vault", wrapping), ("api_keys", api)]))
}

async fn rotate(store: &Arc<dyn Store>, ring: &Ring) -> Result<Answer> {
    let done = vault(store, ring)?.rewrap().await.map_err(refused)?;
    if done.unreadable > 0 {
        crate::failure::tell(format!(
            "{} secrets cannot be read and stay as they are",
            done.unreadable
        ));
    }
    Ok(Answer::facts([
        ("rewrapped", json!(done.rewrapped)),
        ("current", json!(done.current)),
        ("unreadable", json!(done.unreadable)),
    ]))
}

fn vault(store: &Arc<dyn Store>, ring: &Ring) -> Result<Vault> {
    let keys = match (&ring.env, &ring.folder, &ring.active) {
        (Some(name), _, _) => KeyRing::from_env(name),
        (None, Some(folder), Some(active)) => {
            KekId::new(active.as_str()).and_then(|active| KeyRing::from_folder(folder, active))
        }
        _ => return Err(Error::invalid("read keys", "give --env, or --folder with --active")),
    };
    Ok(Vault::new(store.clone(), Arc::new(keys.map_err(refused)?)))
}

/// What the vault refuses, as the command's own error.
fn refused(error: VaultError) -> Error {
    match error {
        VaultError::Store(error) => error,
        error @ (VaultError::InUse { .. }
        | VaultError::RetiredKey(_)
        | VaultError::ActiveKey(_)) => Error::new(ErrorKind::Conflict, "keys", error.to_string()),
        error @ VaultError::UnknownKey(_) => {
            Error::new(ErrorKind::NotFound, "keys", error.to_string())
        }
        error => Error::invalid("keys", error.to_string()),
    }
}
