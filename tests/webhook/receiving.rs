//! How a receiver takes a request once, on every store, and through axum.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use futures_util::future::join_all;
use leasehold::webhook::{
    Accepted, Receiver, Refusal, Refused, Scheme, Signed, Signer, Verifier, accept,
};
use leasehold::{ErrorKind, JobFilter, JobKind, Json, NewJob, Paging, Store, StoreExt};
use tower_service::Service;

use crate::signing::keys;
use crate::{Told, stories};

stories![
    a_request_is_taken_once_with_its_job,
    a_failed_enqueue_leaves_the_nonce_free,
    of_equal_requests_at_once_one_is_taken,
    a_retry_of_a_known_event_does_nothing,
    another_body_under_a_known_id_is_refused,
    hostile_requests_keep_nothing,
    axum_answers_every_refusal_alike,
];

const AT: u64 = 1_700_000_000;

fn verifier(scheme: &Scheme) -> Verifier {
    Verifier::new(scheme.clone(), keys(&[0]))
}

fn sign(scheme: &Scheme, id: &str, at: u64, body: &[u8]) -> Vec<(String, String)> {
    Signer::new(scheme.clone(), keys(&[0])).sign_at(id, at, body).expect("signed")
}

fn job(number: u32) -> NewJob {
    NewJob::new(JobKind::new("told").expect("a kind"), Json::of(&number).expect("JSON"))
}

pub(crate) async fn jobs(store: &Arc<dyn Store>) -> leasehold::Result<usize> {
    Ok(store.jobs(JobFilter::default(), Paging::first(100)).await?.items.len())
}

/// Proves: WH-2, IDM-3
async fn a_request_is_taken_once_with_its_job(store: Arc<dyn Store>) -> Told {
    for scheme in [Scheme::euterpe(), Scheme::standard()] {
        let headers = sign(&scheme, "evt_1", AT, b"{}");
        // Replayed at the last second of the window as well as at once.
        for (n, now) in [(0, AT - 300), (1, AT - 300), (2, AT), (3, AT + 300)] {
            let verifier = verifier(&scheme).sender(&format!("{scheme:?}"))?;
            let verified = verifier.verify_at(now, &headers, b"{}")?;
            let answer = accept(store.records(), &verified, [job(n)]).await?;
            match (n, answer) {
                (0, Ok(Accepted::New(jobs))) => assert_eq!(jobs.len(), 1),
                (1.., Err(why)) if scheme == Scheme::euterpe() => {
                    assert_eq!(why, Refusal::Replayed)
                }
                // Without a nonce it is known by its event.
                (1.., Ok(Accepted::Again)) if scheme == Scheme::standard() => {}
                other => return Err(format!("{other:?}").into()),
            }
        }
    }
    assert_eq!(jobs(&store).await?, 2);
    Ok(())
}

/// Proves: WH-2, IDM-3
async fn a_failed_enqueue_leaves_the_nonce_free(store: Arc<dyn Store>) -> Told {
    let scheme = Scheme::euterpe();
    let headers = sign(&scheme, "evt_1", AT, b"{}");
    let verified = verifier(&scheme).verify_at(AT, &headers, b"{}")?;
    let bad = [job(1), job(2).max_attempts(0)];
    let error = accept(store.records(), &verified, bad).await.expect_err("refused");
    assert_eq!((error.kind(), jobs(&store).await?), (ErrorKind::Invalid, 0));
    let answer = accept(store.records(), &verified, [job(1)]).await?;
    assert!(matches!(answer, Ok(Accepted::New(_))), "{answer:?}");
    Ok(())
}

/// Proves: WH-2, IDM-3
async fn of_equal_requests_at_once_one_is_taken(store: Arc<dyn Store>) -> Told {
    let scheme = Scheme::euterpe();
    for round in 0..5 {
        let headers = sign(&scheme, &format!("evt_{round}"), AT, b"{}");
        let sends = (0..8).map(|n| {
            let (store, headers) = (store.clone(), headers.clone());
            let verified = verifier(&scheme).verify_at(AT, &headers, b"{}");
            tokio::spawn(async move {
                accept(store.records(), &verified.expect("good"), [job(n)]).await
            })
        });
        let mut new = 0;
        for answer in join_all(sends).await {
            match answer?? {
                Ok(Accepted::New(_)) => new += 1,
                Err(why) => assert_eq!(why, Refusal::Replayed),
                Ok(Accepted::Again) => return Err("the nonce is looked at first".into()),
            }
        }
        assert_eq!(new, 1);
    }
    assert_eq!(jobs(&store).await?, 5);
    Ok(())
}

/// Proves: IDM-3, WH-5
async fn a_retry_of_a_known_event_does_nothing(store: Arc<dyn Store>) -> Told {
    for scheme in [Scheme::euterpe(), Scheme::standard()] {
        for n in 0..3_u32 {
            let headers = sign(&scheme, "evt_1", AT + u64::from(n), b"{}");
            let verifier = verifier(&scheme).sender(&format!("{scheme:?}"))?;
            let verified = verifier.verify_at(AT, &headers, b"{}")?;
            let answer = accept(store.records(), &verified, [job(n)]).await?;
            let fits = match answer {
                Ok(Accepted::New(_)) => n == 0,
                Ok(Accepted::Again) => n > 0,
                Err(_) => false,
            };
            assert!(fits, "{n}: {answer:?}");
        }
    }
    assert_eq!(jobs(&store).await?, 2);
    Ok(())
}

/// Proves: IDM-3
async fn another_body_under_a_known_id_is_refused(store: Arc<dyn Store>) -> Told {
    let scheme = Scheme::euterpe();
    for (body, fits) in [(b"{}".as_slice(), true), (b"[]", false)] {
        let headers = sign(&scheme, "evt_1", AT, body);
        let verified = verifier(&scheme).verify_at(AT, &headers, body)?;
        let answer = accept(store.records(), &verified, [job(1)]).await?;
        match fits {
            true => assert!(matches!(answer, Ok(Accepted::New(_)))),
            false => assert_eq!(answer.err(), Some(Refusal::OtherBody)),
        }
    }
    Ok(())
}

async fn told(signed: Signed) -> Result<StatusCode, Refused> {
    let payload = Json::parse_bytes(signed.body()).map_err(Refused::Store)?;
    let kind = JobKind::new("told").map_err(Refused::Store)?;
    match signed.accept([NewJob::new(kind, payload)]).await? {
        Accepted::New(_) => Ok(StatusCode::CREATED),
        Accepted::Again => Ok(StatusCode::OK),
    }
}

pub(crate) fn app(store: &Arc<dyn Store>) -> impl Fn(&[(String, String)], &[u8]) -> Answer + use<> {
    let receiver = Receiver::new(verifier(&Scheme::euterpe()), store.clone());
    let app: Router = Router::new().route("/hook", post(told)).with_state(receiver);
    move |headers, body| {
        let mut request = Request::post("/hook");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.to_vec())).expect("a request");
        let mut app = app.clone();
        Box::pin(async move {
            let answer = app.call(request).await?;
            let status = answer.status();
            let headers: Vec<_> = answer.headers().keys().map(|name| name.to_string()).collect();
            let body = axum::body::to_bytes(answer.into_body(), 1 << 16).await?;
            Ok((status, headers, body.to_vec()))
        })
    }
}

type Sent<'a> = (&'a [(String, String)], &'a [u8]);
pub(crate) type Heard = (StatusCode, Vec<String>, Vec<u8>);
pub(crate) type Answer =
    std::pin::Pin<Box<dyn Future<Output = Result<Heard, libtest_mimic::Failed>>>>;

/// A hundred thousand forged requests through the verifier, and some hundreds through the router,
/// leave neither a nonce nor a job.
///
/// Proves: WH-2
async fn hostile_requests_keep_nothing(store: Arc<dyn Store>) -> Told {
    let scheme = Scheme::euterpe();
    let verifier = verifier(&scheme);
    let good = sign(&scheme, "evt_1", AT, b"{}");
    for n in 0..100_000_u64 {
        let mut headers = good.clone();
        headers[3].1 = format!("{n:032x}"); // a nonce that nobody signed
        let refused = verifier.verify_at(AT, &headers, b"{}").err();
        assert_eq!(refused, Some(Refusal::BadSignature));
    }
    let send = app(&store);
    for n in 0..300_u64 {
        let mut headers = Signer::new(scheme.clone(), keys(&[1])).sign("evt_1", b"{}")?;
        headers[3].1 = format!("{n:032x}");
        assert_eq!(send(&headers, b"{}").await?.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(jobs(&store).await?, 0);
    // Not one of these nonces is kept, nor the event's id: the honest sender may use them all.
    for n in 0..300_u64 {
        let nonce = u128::from(n).to_be_bytes();
        let signer = Signer::new(scheme.clone(), keys(&[0]));
        let headers = signer.sign_with(&format!("evt_{n}"), AT, nonce, b"{}")?;
        let verified = verifier.verify_at(AT, &headers, b"{}")?;
        let answer = accept(store.records(), &verified, []).await?;
        assert!(matches!(answer, Ok(Accepted::New(_))), "{n}: {answer:?}");
    }
    Ok(())
}

/// Proves: WH-2, IDM-3
async fn axum_answers_every_refusal_alike(store: Arc<dyn Store>) -> Told {
    let (send, scheme) = (app(&store), Scheme::euterpe());
    let signer = Signer::new(scheme.clone(), keys(&[0]));
    let (good, again) = (signer.sign("evt_1", b"{}")?, signer.sign("evt_1", b"{}")?);
    assert_eq!(send(&good, b"{}").await?.0, StatusCode::CREATED);
    assert_eq!(send(&again, b"{}").await?.0, StatusCode::OK);
    let other = signer.sign("evt_1", b"[]")?;
    let large = vec![b' '; (1 << 20) + 1];
    let refused: [Sent<'_>; 6] = [
        (&good, b"{}"),
        (&good, b"[]"),
        (&other, b"[]"),
        (&good[1..], b"{}"),
        (&good, &large),
        (&[], b""),
    ];
    let old = sign(&scheme, "evt_2", AT, b"{}");
    let mut answers = vec![send(&old, b"{}").await?];
    for (headers, body) in refused {
        answers.push(send(headers, body).await?);
    }
    for answer in &answers {
        assert_eq!(answer.0.as_u16(), Refusal::STATUS);
        assert_eq!(answer, &answers[0]);
    }
    // Signed, but no JSON: the job cannot be made, and the event is not taken.
    let broken = signer.sign("evt_3", b"{")?;
    assert_eq!(send(&broken, b"{").await?.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(jobs(&store).await?, 1);
    Ok(())
}
