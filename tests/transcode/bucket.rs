//! Owns an S3 service on this machine whose access keys a test lets expire. Knows no jobs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyper_util::rt::TokioIo;
use leasehold::async_trait;
use s3s::S3Result;
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) const BUCKET: &str = "media";

/// Access keys, their secrets, and for how many requests each still counts.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<HashMap<String, (String, u32)>>>);

#[async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let mut keys = self.0.lock().expect("no panic under this lock");
        match keys.get_mut(access_key) {
            Some((secret, left)) if *left > 0 => {
                *left -= 1;
                Ok(SecretKey::from(secret.as_str()))
            }
            // As S3 itself answers: 403.
            _ => Err(s3s::s3_error!(InvalidAccessKeyId, "the key does not count any more")),
        }
    }
}

/// The service, with one bucket; it ends when dropped.
pub(crate) struct Bucket {
    pub(crate) endpoint: String,
    folder: PathBuf,
    keys: Keys,
    task: JoinHandle<()>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.task.abort();
        let _it_may_not_be_there = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bucket {
    pub(crate) async fn open() -> Self {
        let name = format!("bucket_{}", leasehold::WorkerId::new().as_uuid().as_simple());
        let root = std::env::var_os("LEASEHOLD_TEST_DIR");
        let folder = root.map_or_else(std::env::temp_dir, PathBuf::from).join(name);
        std::fs::create_dir_all(folder.join(BUCKET)).expect("a folder");
        let keys = Keys::default();
        let files = s3s_fs::FileSystem::new(&folder).expect("a file system");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(keys.clone());
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ended = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { endpoint, folder, keys, task }
    }

    /// Lets a key count for so many requests.
    pub(crate) fn admit(&self, key: &str, secret: &str, requests: u32) {
        let mut keys = self.keys.0.lock().expect("no panic under this lock");
        keys.insert(key.to_owned(), (secret.to_owned(), requests));
    }

    /// Where an object lies on disk.
    pub(crate) fn file(&self, key: &str) -> PathBuf {
        self.folder.join(BUCKET).join(key)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}
