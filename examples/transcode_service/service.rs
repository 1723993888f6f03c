//! Owns how the service is put together on a store: the API, and the worker with its relay. Knows no
//! command line.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use leasehold::credentials::Credentials;
use leasehold::http::{Api, Offer};
use leasehold::storage::Storage;
use leasehold::vault::{KeyRing, Vault};
use leasehold::webhook::{ByJob, Key, Scheme, Signer, Targets, WebhookSink};
use leasehold::workspace::{Limits, Workspaces};
use leasehold::{
    CancellationToken, Context, JobKind, Lifecycle, QueueName, Relay, Store, Topic, Worker,
};

use super::order::{Order, check};
use super::studio::{Studio, transcode};

/// What stops the service.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What the service is told at its start.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The folder that jobs may read and write.
    pub(crate) local: Option<PathBuf>,
    /// Where temporary files lie.
    pub(crate) scratch: PathBuf,
    /// Whether this machine and plain HTTP are allowed.
    pub(crate) allow_private: bool,
    /// What webhooks are signed with; shared with requesters.
    pub(crate) secret: Option<String>,
    /// The keys of the vault, as `KeyRing::from_env` reads them.
    pub(crate) keys: Option<String>,
}

impl Settings {
    fn targets(&self) -> Targets {
        match self.allow_private {
            true => Targets::public().allow_http().allow_private(),
            false => Targets::public(),
        }
    }

    fn signer(&self) -> Result<Signer, Failed> {
        let secret = self.secret.clone().ok_or("TRANSCODE_SECRET is not set")?;
        Ok(Signer::new(Scheme::euterpe(), Key::new(secret.into_bytes())?))
    }

    fn keys(&self) -> Result<KeyRing, Failed> {
        let keys = self.keys.as_ref().ok_or("TRANSCODE_KEYS is not set")?;
        Ok(KeyRing::from_text(keys)?)
    }

    fn credentials(&self, store: Arc<dyn Store>) -> Result<Credentials, Failed> {
        let vault = Vault::new(store.clone(), Arc::new(self.keys()?));
        let begun = Credentials::builder(store, vault, self.signer()?);
        Ok(begun.way_out(self.targets()).build()?)
    }
}

fn kind() -> Result<JobKind, Failed> {
    Ok(JobKind::new("transcode")?)
}

fn queue() -> Result<QueueName, Failed> {
    Ok(QueueName::new("transcode")?)
}

/// `POST /transcode`, `GET /transcode/status`, `PUT /transcode/credentials`.
pub(crate) fn api(store: Arc<dyn Store>, settings: &Settings) -> Result<Router, Failed> {
    let offer = Offer::new("transcode", kind()?)?
        .queue(queue()?)
        .lifecycle(Lifecycle::transcode().name().clone())
        .check(check);
    let credentials = settings.credentials(store.clone())?;
    Ok(Api::new(store).offer(offer).credentials(credentials).router())
}

/// Works, and tells of it, until it is told to stop.
pub(crate) async fn work(
    store: Arc<dyn Store>,
    settings: &Settings,
    shutdown: CancellationToken,
) -> Result<(), Failed> {
    let mut storage = Storage::builder().way_out(settings.targets());
    if let Some(local) = &settings.local {
        std::fs::create_dir_all(local)?;
        storage = storage.local(local);
    }
    let studio = Arc::new(Studio {
        store: store.clone(),
        storage: storage.build()?,
        workspaces: Workspaces::open(&settings.scratch, Limits::default())?,
        credentials: settings.credentials(store.clone())?,
    });
    let worker = Worker::builder(store.clone())
        .queue(queue()?)
        .handler(kind()?, move |context: Context, order: Order| {
            transcode(studio.clone(), context, order)
        })
        .idempotent()
        .build();
    let sink = WebhookSink::builder(store.clone(), settings.signer()?)
        .route(ByJob::new(store.clone(), "status_webhook_url"))
        .way_out(settings.targets())
        .build()?;
    let relay = Relay::new(store, sink).topics([Topic::new("transcode")?]);
    let (worked, relayed) = tokio::join!(worker.run(shutdown.clone()), relay.run(shutdown));
    worked?;
    relayed?;
    Ok(())
}
