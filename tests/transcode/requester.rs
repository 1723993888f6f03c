//! Owns a requester of the transcode service: a second of audio, the credentials it gives, the events it is
//! told, and how long it waits. Knows no story.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::credentials::Credentials;
use leasehold::vault::{KeyRing, Vault};
use leasehold::webhook::{Key, Scheme, Signer, Verifier};
use leasehold::{
    CancellationToken, JobId, JobKind, JobView, Json, Lifecycle, NewJob, QueueName, Scope, Store,
    StoreExt,
};
use libtest_mimic::Failed;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::bucket::{BUCKET, Bucket};
use crate::server::{Act, Seen, Server};
use crate::service::{Settings, work};

pub(crate) const SECRET: &str = "an-example-of-32-bytes-or-longer";
pub(crate) const KEYS: &str = "2026-11:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
pub(crate) const REQUESTER: &str = "studio-7";
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What the service reads from its environment; called before any thread is there.
pub(crate) fn settings_of(folder: PathBuf) -> Settings {
    Settings {
        local: Some(folder.clone()),
        scratch: folder.join("scratch"),
        allow_private: true,
        secret: Some(SECRET.to_owned()),
        keys: Some(KEYS.to_owned()),
    }
}

/// A second of two tones.
pub(crate) fn samples() -> Vec<i32> {
    let sample = |n: u32| {
        let at = f64::from(n / 2) / 8_000.0;
        let tone = if n.is_multiple_of(2) { 440.0 } else { 554.37 };
        let value = (at * tone * std::f64::consts::TAU).sin() * 12_000.0;
        #[allow(clippy::cast_possible_truncation, reason = "within 16 bits")]
        let value = value as i32;
        value
    };
    (0..16_000).map(sample).collect()
}

pub(crate) fn wav(to: &std::path::Path) {
    let spec = hound::WavSpec {
        channels: 2,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = hound::WavWriter::create(to, spec).expect("a file");
    for sample in samples() {
        file.write_sample(sample).expect("written");
    }
    file.finalize().expect("written");
}

/// The very samples, read by another decoder.
pub(crate) fn assert_flac(file: &std::path::Path) {
    let mut read = claxon::FlacReader::open(file).expect("a FLAC file");
    assert_eq!((read.streaminfo().channels, read.streaminfo().sample_rate), (2, 8_000));
    let found: Vec<i32> = read.samples().map(|sample| sample.expect("a sample")).collect();
    assert!(found == samples(), "the samples differ");
}

/// The requester's side: gives what it is told to give, and keeps each event once.
#[derive(Clone)]
pub(crate) struct Requester {
    gives: Arc<Mutex<Vec<Act>>>,
    asked: Arc<Mutex<u32>>,
    events: watch::Sender<Vec<(String, Value)>>,
}

impl Requester {
    /// Answers refreshes one after the other; the last answer again and again.
    pub(crate) fn giving(gives: Vec<Act>) -> Self {
        let gives = Arc::new(Mutex::new(gives));
        Self { gives, asked: Arc::default(), events: watch::Sender::default() }
    }

    pub(crate) async fn serve(&self) -> Server {
        let this = self.clone();
        Server::start(move |seen| this.answer(seen)).await
    }

    pub(crate) fn answer(&self, seen: &Seen) -> Act {
        let key = Key::new(SECRET.as_bytes().to_vec()).expect("a key");
        let verifier = Verifier::new(Scheme::euterpe(), key);
        let verified = verifier.verify(&seen.headers, &seen.body).expect("well signed");
        if seen.path == "/refresh" {
            *self.asked.lock().expect("no panic under this lock") += 1;
            let mut gives = self.gives.lock().expect("no panic under this lock");
            return if gives.len() > 1 { gives.remove(0) } else { gives[0].clone() };
        }
        let event = serde_json::from_slice(&seen.body).expect("JSON");
        self.events.send_if_modified(|events| {
            let is_new = events.iter().all(|(id, _)| id != verified.event_id());
            if is_new {
                events.push((verified.event_id().to_owned(), event));
            }
            is_new
        });
        Act::status(204)
    }

    pub(crate) fn asked(&self) -> u32 {
        *self.asked.lock().expect("no panic under this lock")
    }

    /// What was told of a job, in its order.
    pub(crate) fn told(&self, job: JobId) -> Vec<Value> {
        let events = self.events.borrow();
        let of = |event: &Value| event["job_id"] == job.to_string();
        let mut told: Vec<Value> =
            events.iter().map(|(_, event)| event.clone()).filter(of).collect();
        told.sort_by_key(|event| event["seq"].as_i64());
        told
    }

    /// Waits until what was told is as it should be.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) -> Result<(), Failed> {
        let mut events = self.events.subscribe();
        let wait = async {
            while !is_so(self) {
                events.changed().await?;
            }
            Ok::<_, Failed>(())
        };
        tokio::time::timeout(PATIENCE, wait).await?
    }

    /// Whether a job's success was told.
    pub(crate) fn is_done(&self, job: JobId) -> bool {
        self.told(job).last().is_some_and(|event| event["to"] == "succeeded")
    }
}

pub(crate) fn credentials(key: &str, secret: &str) -> Act {
    let given = json!({ "credentials": { "access_key_id": key, "secret_access_key": secret } });
    Act::Answer(200, "", given.to_string())
}

pub(crate) fn in_bucket(bucket: &Bucket, key: &str) -> Value {
    json!({ "at": "s3", "endpoint": bucket.endpoint, "region": "us-east-1", "bucket": BUCKET, "key": key })
}

pub(crate) fn payload(server: &Server, source: &Value, output: &Value) -> Value {
    let base = format!("http://{}", server.address);
    json!({
        "source": source,
        "output": output,
        "refresh_url": format!("{base}/refresh"),
        "status_webhook_url": format!("{base}/events"),
    })
}

pub(crate) fn order(server: &Server, source: &Value, output: &Value) -> Result<NewJob, Failed> {
    let payload = payload(server, source, output);
    Ok(NewJob::new(JobKind::new("transcode")?, Json::of(&payload)?)
        .queue(QueueName::new("transcode")?)
        .lifecycle(Lifecycle::transcode().name().clone())
        .scope(Scope::new(REQUESTER)?)
        .key(JobId::new().to_string().parse()?))
}

/// Works until a job is over and everything of it is told; how it ended.
pub(crate) async fn finish(
    store: &Arc<dyn Store>,
    folder: &std::path::Path,
    job: JobId,
    requester: &Requester,
) -> Result<JobView, Failed> {
    let shutdown = CancellationToken::new();
    let settings = settings_of(folder.to_owned());
    let working = work(store.clone(), &settings, shutdown.clone());
    let over = async {
        let _ends_the_work = shutdown.clone().drop_guard();
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let view = store.job(job).await?.ok_or("the job is gone")?;
            let last = requester.told(job).last().map(|event| event["to"].clone());
            if view.finished_at.is_some() && last.is_some_and(|to| to == view.status) {
                return Ok::<_, Failed>(view);
            }
        }
    };
    let over = tokio::time::timeout(PATIENCE, over);
    let (worked, over) = tokio::join!(working, over);
    worked.map_err(|error| error.to_string())?;
    over?
}

pub(crate) fn keys(store: &Arc<dyn Store>) -> Result<Credentials, Failed> {
    let ring = KeyRing::new(leasehold::vault::KekId::new("2026-11")?, [7; 32])?;
    let signer = Signer::new(Scheme::euterpe(), Key::new(SECRET.as_bytes().to_vec())?);
    let vault = Vault::new(store.clone(), Arc::new(ring));
    Ok(Credentials::builder(store.clone(), vault, signer).build()?)
}
