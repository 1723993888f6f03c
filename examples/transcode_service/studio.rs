//! Owns a job's way through the stages: fetching, processing, uploading; and what happens when storage
//! refuses the credentials on the way. Knows no HTTP and no engine.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use leasehold::credentials::{Credentials, Current, Refreshed};
use leasehold::storage::{Access, Place, Storage};
use leasehold::vault::ExposeSecret;
use leasehold::workspace::{self, Workspace, Workspaces};
use leasehold::{Context, Failure, FailureCode, Handled, HandlerError, StageName, Store, StoreExt};
use serde::Serialize;

use super::flac;
use super::order::Order;

/// How often one attempt asks for new credentials.
const REFRESHES: u32 = 3;

/// What every job needs.
#[derive(Debug)]
pub(crate) struct Studio {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Storage,
    pub(crate) workspaces: Workspaces,
    pub(crate) credentials: Credentials,
}

/// What a job has made; stands in its status and in the last webhook.
#[derive(Serialize)]
struct Made {
    outputs: Vec<Output>,
}

#[derive(Serialize)]
struct Output {
    format: &'static str,
    bytes: u64,
}

/// How a step with credentials ended.
enum Step<T> {
    Done(T),
    /// The requester has no new credentials yet.
    PutOff(Duration),
}

/// One job at work.
struct Session<'a> {
    studio: &'a Studio,
    context: &'a Context,
    order: &'a Order,
    requester: String,
    /// The version of the credentials in hand; 0 without any.
    version: i64,
    access: Access,
    refreshes: u32,
}

/// Gives a step's value, or ends the job's attempt uncounted.
macro_rules! done {
    ($step:expr) => {
        match $step {
            Step::Done(value) => value,
            Step::PutOff(wait) => return Ok(Handled::snooze(wait)),
        }
    };
}

/// Transcodes one file; every write is behind the fence, and a second run writes the same output.
pub(crate) async fn transcode(
    studio: Arc<Studio>,
    context: Context,
    order: Order,
) -> Result<Handled, HandlerError> {
    let job = studio.store.job(context.job().id).await?;
    let requester = job.map(|job| job.scope.as_str().to_owned()).unwrap_or_default();
    let mut session = Session {
        studio: &studio,
        context: &context,
        order: &order,
        requester,
        version: 0,
        access: Access::default(),
        refreshes: 0,
    };
    session.open().await?;
    let workspace = studio.workspaces.begin()?;
    context.advance(StageName::new("fetching")?).await?;
    let size = done!(session.fetch(&workspace).await?);
    context.advance(StageName::new("processing")?).await?;
    let bytes = encode(&workspace, size).await?;
    context.advance(StageName::new("uploading")?).await?;
    done!(session.upload(&workspace).await?);
    Ok(Handled::done_with(&Made { outputs: vec![Output { format: "flac", bytes }] }))
}

/// Encodes in a thread that may block; how large the output is.
async fn encode(workspace: &Workspace, size: u64) -> Result<u64, HandlerError> {
    let (source, output) = (workspace.path("in.wav")?, workspace.output("out.flac", size)?);
    let encoded = tokio::task::spawn_blocking(move || {
        let (source, mut output) = (BufReader::new(File::open(source)?), output);
        flac::encode(source, &mut output).map(|()| output.size())
    });
    let encoded =
        encoded.await.map_err(|error| Failure::new(FailureCode::Panic, error.to_string()))?;
    Ok(encoded.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Failure::new(FailureCode::PayloadInvalid, error.to_string())
        }
        _ => workspace::failure(&error),
    })?)
}

impl Session<'_> {
    /// Takes the credentials that are there, if any.
    async fn open(&mut self) -> Result<(), HandlerError> {
        let (job, credentials) = (self.context.job().id, &self.studio.credentials);
        match credentials.current(job, &self.requester).await.map_err(|it| it.failure())? {
            Some(now) => self.take(&now),
            None => Ok(()),
        }
    }

    fn take(&mut self, now: &Current) -> Result<(), HandlerError> {
        let refuse = |error: leasehold::Error| {
            HandlerError::from(Failure::new(FailureCode::PayloadInvalid, error.to_string()))
        };
        self.access = Access::read(now.secret.expose_secret()).map_err(refuse)?;
        self.version = now.version;
        Ok(())
    }

    /// What a place needs; local files need nothing.
    fn lacks(&self, place: &Place) -> bool {
        self.version == 0 && matches!(place, Place::S3 { .. } | Place::Signed { .. })
    }

    async fn fetch(&mut self, workspace: &Workspace) -> Result<Step<u64>, HandlerError> {
        loop {
            if !self.lacks(&self.order.source) {
                let file = workspace.path("in.wav")?;
                if file.exists() {
                    std::fs::remove_file(&file)?;
                }
                let mut file = workspace.source("in.wav", None)?;
                let storage = &self.studio.storage;
                match storage.fetch(&self.order.source, &self.access, &mut file).await {
                    Ok(size) => return Ok(Step::Done(size)),
                    Err(failure) if failure.code() == FailureCode::CredentialsExpired => {}
                    Err(failure) => return Err(failure.into()),
                }
            }
            if let Some(wait) = self.refresh().await? {
                return Ok(Step::PutOff(wait));
            }
        }
    }

    async fn upload(&mut self, workspace: &Workspace) -> Result<Step<()>, HandlerError> {
        let file = workspace.path("out.flac")?;
        loop {
            self.context.ensure_live(Duration::ZERO)?;
            if !self.lacks(&self.order.output) {
                let storage = &self.studio.storage;
                match storage.store(&file, &self.order.output, &self.access).await {
                    Ok(()) => return Ok(Step::Done(())),
                    Err(failure) if failure.code() == FailureCode::CredentialsExpired => {}
                    Err(failure) => return Err(failure.into()),
                }
            }
            if let Some(wait) = self.refresh().await? {
                return Ok(Step::PutOff(wait));
            }
        }
    }

    /// Asks for new credentials; how long to wait where there are none yet.
    async fn refresh(&mut self) -> Result<Option<Duration>, HandlerError> {
        let denied = |why: &str| HandlerError::from(Failure::new(FailureCode::AuthDenied, why));
        let Some(url) = &self.order.refresh_url else {
            return Err(denied("storage refuses the credentials, and there is no refresh_url"));
        };
        if self.refreshes >= REFRESHES {
            return Err(denied("storage refuses every new credential"));
        }
        self.refreshes += 1;
        let (job, credentials) = (self.context.job().id, &self.studio.credentials);
        match credentials.refresh(job, &self.requester, url, self.version).await? {
            Refreshed::NotYet(wait) => Ok(Some(wait)),
            Refreshed::Advanced(now) => {
                self.take(&now)?;
                Ok(None)
            }
        }
    }
}
