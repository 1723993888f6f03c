//! Owns how a job's files come from storage and go there: local folders, HTTP and S3, by credentials or by
//! signed URLs. Refuses to know what the files hold, and keeps no secret.
//!
//! Whatever is connected to is judged as a webhook's target is. A 401, a 403 and S3's `ExpiredToken` are
//! `CREDENTIALS_EXPIRED`, upon which the requester is asked for new ones (`credentials`).

mod client;
mod failure;
mod local;
mod signed;

use std::fmt;
use std::io::Write as _;
use std::path::{Path as FilePath, PathBuf};

use futures_util::StreamExt;
use leasehold_core::{Error, Failure, FailureCode, Result};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::io::AsyncReadExt;

use crate::webhook::WayOut;
use crate::workspace::{self, Bounded};
use client::Service;
use failure::failure_of;

/// How much of a file is sent at once, in bytes; S3 takes no smaller part but the last.
const PART: usize = 8 * 1024 * 1024;
/// How many parts are on their way at once.
const PARTS: usize = 4;

/// A store and a path in it, or why there is none.
type Opened = Result<(Box<dyn ObjectStore>, Path), Box<Failure>>;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Place {
    /// Below the folder that the service allows: a regular file, and no symbolic link on the way to it.
    Local {
        /// From that folder, with `/` between parts.
        path: String,
    },
    /// On a server that speaks WebDAV or plain HTTP.
    Http {
        /// The server's URL.
        base: String,
        /// From there.
        path: String,
    },
    /// In a bucket of an S3 service.
    S3 {
        /// The service's URL.
        endpoint: String,
        /// The region.
        region: String,
        /// The bucket.
        bucket: String,
        /// The object's key.
        key: String,
    },
    /// Behind a URL that carries its own signature, which the credentials hold under this name.
    Signed {
        /// The name of the URL.
        name: String,
    },
}

/// What opens storage, as requesters write it: JSON, sealed in the vault.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Access {
    /// Of S3.
    pub access_key_id: Option<String>,
    /// Of S3.
    pub secret_access_key: Option<SecretText>,
    /// Of S3, for short-lived credentials.
    pub session_token: Option<SecretText>,
    /// URLs that carry their own signature, by their names.
    pub urls: std::collections::BTreeMap<String, SecretText>,
}

/// A secret text that is wiped and never shown.
#[derive(Clone)]
pub struct SecretText(SecretString);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self(SecretString::from(text)))
    }
}

impl SecretText {
    fn text(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access([secret])")
    }
}

impl Access {
    /// Reads what a requester wrote.
    ///
    /// # Errors
    /// `Invalid`, which shows nothing of it.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let refuse = |_| Error::invalid("read credentials", "they are not of the known form");
        serde_json::from_slice(bytes).map_err(refuse)
    }
}

/// Storage as this service reaches it.
#[derive(Clone, Debug)]
pub struct Storage {
    root: Option<PathBuf>,
    service: Service,
    http: bool,
}

/// Puts a [`Storage`] together: HTTPS to public addresses, no local folder.
#[derive(Debug)]
pub struct StorageBuilder {
    root: Option<PathBuf>,
    way: WayOut,
}

impl StorageBuilder {
    /// Allows files below a folder.
    #[must_use]
    pub fn local(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Sets how servers are reached: by [`Targets`](crate::webhook::Targets), or by a [`WayOut`]; 30 s unless
    /// set.
    #[must_use]
    pub fn way_out(mut self, way: impl Into<WayOut>) -> Self {
        self.way = way.into();
        self
    }

    /// Ends the building.
    ///
    /// # Errors
    /// `Invalid` for a certificate that cannot be trusted.
    pub fn build(self) -> Result<Storage> {
        let http = self.way.targets().allows_http();
        Ok(Storage { root: self.root, service: Service::new(&self.way)?, http })
    }
}

impl Storage {
    /// Begins a storage.
    pub fn builder() -> StorageBuilder {
        StorageBuilder { root: None, way: WayOut::default() }
    }

    /// Reads an object into a file of a workspace, no more than that takes; how large it is.
    ///
    /// # Errors
    /// `CREDENTIALS_EXPIRED` for a refusal, `SIZE_EXCEEDED`, and as the storage's answer means.
    pub async fn fetch(
        &self,
        from: &Place,
        access: &Access,
        into: &mut Bounded,
    ) -> Result<u64, Failure> {
        if let Place::Signed { name } = from {
            let url = url(access, name).map_err(|failure| *failure)?;
            return self.service.get((&url, from), into).await;
        }
        let (store, path) = self.open(from, access).map_err(|failure| *failure)?;
        let found = store.get(&path).await.map_err(|error| failure_of(&error, from))?;
        into.admit(found.meta.size).map_err(|error| workspace::failure(&error))?;
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| failure_of(&error, from))?;
            into.write_all(&piece).map_err(|error| workspace::failure(&error))?;
        }
        Ok(into.size())
    }

    /// Writes a file to storage, in place of what is there; a part of it is never seen.
    ///
    /// # Errors
    /// `CREDENTIALS_EXPIRED` for a refusal, and as the storage's answer means.
    pub async fn store(&self, file: &FilePath, to: &Place, access: &Access) -> Result<(), Failure> {
        let broken = |error: std::io::Error| workspace::failure(&error);
        if let Place::Signed { name } = to {
            let url = url(access, name).map_err(|failure| *failure)?;
            return self.service.put(file, (&url, to)).await;
        }
        let (store, path) = self.open(to, access).map_err(|failure| *failure)?;
        let name = file;
        let mut file = tokio::fs::File::open(name).await.map_err(broken)?;
        let size = file.metadata().await.map_err(broken)?.len();
        if size <= PART as u64 {
            let mut whole = Vec::new();
            file.read_to_end(&mut whole).await.map_err(broken)?;
            let put = store.put(&path, whole.into()).await;
            return put.map(|_| ()).map_err(|error| failure_of(&error, to));
        }
        if let Place::Http { base, .. } = to {
            // Plain HTTP knows no parts: one request, whose body is read as it is sent.
            let mut folders = below(base, &path).map_err(|failure| *failure)?;
            let Some(url) = folders.pop() else {
                return Err(Failure::new(FailureCode::PayloadInvalid, "the place's path is none"));
            };
            return self.service.put_below(name, (&folders, &url), to).await;
        }
        let begun = store.put_multipart(&path).await.map_err(|error| failure_of(&error, to))?;
        let mut upload = WriteMultipart::new_with_chunk_size(begun, PART);
        let mut piece = vec![0; 256 * 1024];
        loop {
            let sent = upload.wait_for_capacity(PARTS).await;
            let read = match sent {
                Ok(()) => file.read(&mut piece).await.map_err(broken),
                Err(error) => Err(failure_of(&error, to)),
            };
            match read {
                Ok(0) => break,
                Ok(count) => upload.write(piece.get(..count).unwrap_or_default()),
                Err(failure) => {
                    let _what_is_left_is_the_bucket_s_to_expire = upload.abort().await;
                    return Err(failure);
                }
            }
        }
        upload.finish().await.map(|_| ()).map_err(|error| failure_of(&error, to))
    }

    fn open(&self, place: &Place, access: &Access) -> Opened {
        let refuse = |why: &str| Box::new(Failure::new(FailureCode::PayloadInvalid, why));
        let path = |text: &str| Path::parse(text).map_err(|_| refuse("the place's path is none"));
        let broken = |error: object_store::Error| Box::new(failure_of(&error, place));
        // Attempts are the job's; the client makes none of its own.
        let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let options =
            ClientOptions::new().with_allow_http(self.http).with_timeout(self.service.timeout());
        match place {
            Place::Local { path: text } => {
                let path = path(text)?;
                Ok((Box::new(local::open(self.root.as_deref(), place, &path)?), path))
            }
            Place::Http { base, path: text } => {
                let base = base.trim_end_matches('/'); // or there would be two
                let store = HttpBuilder::new().with_url(base).with_client_options(options);
                let store = store.with_retry(once).with_http_connector(self.service.clone());
                Ok((Box::new(store.build().map_err(broken)?), path(text)?))
            }
            Place::S3 { endpoint, region, bucket, key } => {
                let mut store = AmazonS3Builder::new()
                    .with_endpoint(endpoint)
                    .with_region(region)
                    .with_bucket_name(bucket)
                    .with_allow_http(self.http)
                    .with_client_options(options)
                    .with_retry(once)
                    .with_http_connector(self.service.clone());
                let Access { access_key_id, secret_access_key, session_token, .. } = access;
                match (access_key_id, secret_access_key) {
                    (Some(id), Some(secret)) => {
                        store = store.with_access_key_id(id);
                        store = store.with_secret_access_key(secret.text());
                    }
                    _ => return Err(refuse("the credentials hold no keys of S3")),
                }
                if let Some(token) = session_token {
                    store = store.with_token(token.text());
                }
                Ok((Box::new(store.build().map_err(broken)?), path(key)?))
            }
            Place::Signed { .. } => Err(refuse("a signed URL has no store")),
        }
    }
}

fn url(access: &Access, name: &str) -> Result<hyper::Uri, Box<Failure>> {
    let refuse = |why: String| Box::new(Failure::new(FailureCode::PayloadInvalid, why));
    let url = access.urls.get(name);
    let url = url.ok_or_else(|| refuse(format!("the credentials hold no URL {name:?}")))?;
    url.text().parse().map_err(|_| refuse(format!("the URL {name:?} is none")))
}

/// The URLs of a path below a server's: of each folder on the way, and its own as the last.
fn below(base: &str, path: &Path) -> Result<Vec<hyper::Uri>, Box<Failure>> {
    let refuse = || Box::new(Failure::new(FailureCode::PayloadInvalid, "the place's base is none"));
    if base.contains(['?', '#']) {
        return Err(refuse());
    }
    let (mut url, mut all) = (base.trim_end_matches('/').to_owned(), Vec::new());
    for part in path.parts() {
        url.push('/');
        for byte in part.as_ref().bytes() {
            match byte {
                byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                    url.push(char::from(byte));
                }
                byte => url.push_str(&format!("%{byte:02X}")),
            }
        }
        all.push(url.parse().map_err(|_| refuse())?);
    }
    Ok(all)
}
