//! Credentials that storage refuses: one signed call for a job whoever asks, work that goes on only with
//! a higher version, and a budget of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold::credentials::{Credentials, Refreshed};
use leasehold::vault::{Dek, KekId, KeyRing, KeyWrap, Places, Vault, VaultError};
use leasehold::webhook::{Scheme, Signer, Verifier, WayOut};
use leasehold::{Failure, FailureCode, JobId, Store, async_trait};
use secrecy::ExposeSecret;

use crate::sealing::ring;
use crate::sending::here;
use crate::server::{Act, Seen, Server};
use crate::signing::keys;
use crate::{Told, stories};

stories![
    new_credentials_in_the_answer_are_gone_on_with,
    credentials_written_by_a_call_of_their_own_are_gone_on_with,
    without_a_higher_version_the_budget_is_charged_and_then_denied,
    many_workers_make_one_call,
    who_looked_before_anothers_whole_turn_makes_no_call,
    credentials_that_came_meanwhile_need_no_call,
    a_lost_caller_holds_up_nobody_for_long,
    credentials_belong_to_their_requester,
];

const REQUESTER: &str = "studio-7";

fn credentials(store: &Arc<dyn Store>) -> leasehold::Result<Credentials> {
    credentials_with(store, Arc::new(ring("a")))
}

fn credentials_with(
    store: &Arc<dyn Store>,
    ring: Arc<dyn KeyWrap>,
) -> leasehold::Result<Credentials> {
    let vault = Vault::new(store.clone(), ring);
    let signer = Signer::new(Scheme::euterpe(), keys(&[0]));
    Credentials::builder(store.clone(), vault, signer)
        .way_out(WayOut::to(here()).timeout(Duration::from_secs(60)))
        .patience(Duration::ZERO)
        .budget(3)
        .build()
}

async fn begun(credentials: &Credentials) -> Result<JobId, libtest_mimic::Failed> {
    let job = JobId::new();
    let version = credentials.write(job, REQUESTER, b"\"first\"", Places::new()).await?;
    assert_eq!(version, 1);
    Ok(job)
}

async fn refresh(
    credentials: &Credentials,
    job: JobId,
    server: &Server,
    refused: i64,
) -> Result<Refreshed, Failure> {
    credentials.refresh(job, REQUESTER, &server.url(), refused).await
}

fn risen(refreshed: Refreshed) -> (i64, Vec<u8>) {
    match refreshed {
        Refreshed::Advanced(now) => (now.version, now.secret.expose_secret().to_vec()),
        Refreshed::NotYet(wait) => panic!("put off for {wait:?}"),
    }
}

fn answer(secret: &str) -> Act {
    Act::Answer(200, "", format!("{{\"credentials\":{secret}}}"))
}

/// The call is signed, and says which version was refused.
///
/// Proves: CR-1, CR-2
async fn new_credentials_in_the_answer_are_gone_on_with(store: Arc<dyn Store>) -> Told {
    let server = Server::start(|_| answer(r#"{"token":"second"}"#)).await;
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    let now = risen(refresh(&credentials, job, &server, 1).await?);
    assert_eq!(now, (2, br#"{"token":"second"}"#.to_vec()));
    let Seen { headers, body, .. } = server.seen().remove(0);
    let verified = Verifier::new(Scheme::euterpe(), keys(&[0])).verify(&headers, &body)?;
    assert_eq!(verified.event_id(), format!("refresh-{job}-1"));
    let told: serde_json::Value = serde_json::from_slice(&body)?;
    assert_eq!(told, serde_json::json!({ "job_id": job.to_string(), "credential_version": 1 }));
    // What brought something is not charged: any number of such refreshes.
    for refused in 2..9 {
        assert_eq!(risen(refresh(&credentials, job, &server, refused).await?).0, refused + 1);
    }
    Ok(())
}

/// Proves: CR-1, CR-2
async fn credentials_written_by_a_call_of_their_own_are_gone_on_with(
    store: Arc<dyn Store>,
) -> Told {
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    let (writing, handle) = (credentials.clone(), tokio::runtime::Handle::current());
    // The requester writes before it answers 202.
    let server = Server::start(move |_| {
        let writing = writing.clone();
        let written = tokio::task::block_in_place(|| {
            handle.block_on(writing.write(job, REQUESTER, b"\"second\"", Places::new()))
        });
        assert_eq!(written.expect("written"), 2);
        Act::status(202)
    });
    let server = server.await;
    let now = risen(refresh(&credentials, job, &server, 1).await?);
    assert_eq!(now, (2, b"\"second\"".to_vec()));
    Ok(())
}

/// Proves: CR-1, CR-2, RT-4
async fn without_a_higher_version_the_budget_is_charged_and_then_denied(
    store: Arc<dyn Store>,
) -> Told {
    let count = Arc::new(AtomicU32::new(0));
    let counting = count.clone();
    let server = Server::start(move |_| match counting.fetch_add(1, Ordering::SeqCst) {
        0 => Act::status(503),
        1 => Act::status(202),
        _ => Act::Answer(200, "", "no credentials".to_owned()),
    });
    let server = server.await;
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    for _ in 0..3 {
        match refresh(&credentials, job, &server, 1).await? {
            Refreshed::NotYet(wait) => assert!(wait >= Duration::from_secs(5)),
            Refreshed::Advanced(_) => panic!("nothing new was written"),
        }
    }
    let denied = refresh(&credentials, job, &server, 1).await.expect_err("denied");
    assert_eq!((denied.code(), denied.is_retryable()), (FailureCode::AuthDenied, false));
    assert_eq!(count.load(Ordering::SeqCst), 3, "no call beyond the budget");
    // Credentials that the requester writes at last are gone on with, without a call.
    credentials.write(job, REQUESTER, b"\"late\"", Places::new()).await?;
    assert_eq!(risen(refresh(&credentials, job, &server, 1).await?).0, 2);
    Ok(())
}

/// Proves: CR-1
async fn many_workers_make_one_call(store: Arc<dyn Store>) -> Told {
    let server = Server::start(|_| answer("\"second\"")).await;
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    let asking = (0..8).map(|_| refresh(&credentials, job, &server, 1));
    for answer in futures_util::future::join_all(asking).await {
        assert_eq!(risen(answer?), (2, b"\"second\"".to_vec()));
    }
    assert_eq!(server.seen().len(), 1);
    Ok(())
}

/// A ring that keeps its first caller waiting, after the secret was read and before it is open.
#[derive(Debug)]
struct Slow {
    ring: KeyRing,
    calls: AtomicU32,
    asked: tokio::sync::Notify,
    goes_on: tokio::sync::Notify,
}

#[async_trait]
impl KeyWrap for Slow {
    fn active(&self) -> KekId {
        self.ring.active()
    }

    async fn wrap(&self, kek: &KekId, dek: &Dek, aad: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.ring.wrap(kek, dek, aad).await
    }

    async fn unwrap(&self, kek: &KekId, wrapped: &[u8], aad: &[u8]) -> Result<Dek, VaultError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            self.asked.notify_one();
            self.goes_on.notified().await;
        }
        self.ring.unwrap(kek, wrapped, aad).await
    }
}

/// One has looked and found the refused version; before it takes its turn another has a whole one.
///
/// Proves: CR-1
async fn who_looked_before_anothers_whole_turn_makes_no_call(store: Arc<dyn Store>) -> Told {
    let server = Server::start(|_| answer("\"second\"")).await;
    let quick = credentials(&store)?;
    let job = begun(&quick).await?;
    let slow = Arc::new(Slow {
        ring: ring("a"),
        calls: AtomicU32::new(0),
        asked: tokio::sync::Notify::new(),
        goes_on: tokio::sync::Notify::new(),
    });
    let late = credentials_with(&store, slow.clone())?;
    let between = async {
        slow.asked.notified().await;
        let now = refresh(&quick, job, &server, 1).await;
        slow.goes_on.notify_one();
        now
    };
    let (late, quick) = tokio::join!(refresh(&late, job, &server, 1), between);
    for answer in [late, quick] {
        assert_eq!(risen(answer?), (2, b"\"second\"".to_vec()));
    }
    assert_eq!(server.seen().len(), 1);
    Ok(())
}

/// Proves: CR-1
async fn credentials_that_came_meanwhile_need_no_call(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(500)).await;
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    credentials.write(job, REQUESTER, b"\"second\"", Places::new()).await?;
    assert_eq!(risen(refresh(&credentials, job, &server, 1).await?).0, 2);
    assert!(server.seen().is_empty());
    let same = credentials.current(job, REQUESTER).await?.expect("there");
    assert_eq!((same.version, same.secret.expose_secret()), (2, &b"\"second\""[..]));
    Ok(())
}

/// A caller that is dropped in the middle, as a killed worker is, leaves its turn to lapse.
///
/// Proves: CR-1
async fn a_lost_caller_holds_up_nobody_for_long(store: Arc<dyn Store>) -> Told {
    let arrived = Arc::new(tokio::sync::Notify::new());
    let tell = arrived.clone();
    let hanging = Server::start(move |_| {
        tell.notify_one();
        Act::Hang
    });
    let hanging = hanging.await;
    let vault = Vault::new(store.clone(), Arc::new(ring("a")));
    let signer = Signer::new(Scheme::euterpe(), keys(&[0]));
    let short = Credentials::builder(store.clone(), vault, signer)
        .way_out(WayOut::to(here()).timeout(Duration::from_secs(1)))
        .patience(Duration::ZERO)
        .build()?;
    let job = begun(&short).await?;
    {
        let mut lost = Box::pin(refresh(&short, job, &hanging, 1));
        // Dropped once its call has arrived.
        tokio::select! {
            _ = &mut lost => panic!("the call hangs"),
            () = arrived.notified() => {}
        }
    }
    let server = Server::start(|_| answer("\"second\"")).await;
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        match refresh(&short, job, &server, 1).await? {
            Refreshed::Advanced(now) => break assert_eq!(now.version, 2),
            Refreshed::NotYet(_) => assert!(tokio::time::Instant::now() < end, "held up for ever"),
        }
    }
    Ok(())
}

/// Proves: CR-2
async fn credentials_belong_to_their_requester(store: Arc<dyn Store>) -> Told {
    let credentials = credentials(&store)?;
    let job = begun(&credentials).await?;
    assert!(credentials.current(job, "another").await.is_err());
    assert!(credentials.current(JobId::new(), REQUESTER).await?.is_none());
    // A job that never had any asks for its first.
    let server = Server::start(|_| answer("\"first\"")).await;
    assert_eq!(risen(refresh(&credentials, JobId::new(), &server, 0).await?).0, 1);
    Ok(())
}
