//! A receiver that is killed between verifying and taking, requests that come twice, and keys that are
//! replaced while events are on their way; each for both forms of signature. The children are this program
//! again.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use leasehold::webhook::{
    Accepted, Keys, Refusal, Scheme, SignFor, Signer, Verifier, WayOut, WebhookSink, accept,
};
use leasehold::{
    EventId, EventState, Failure, JobFilter, JobKind, Json, NewJob, Paging, Store, StoreExt,
    async_trait,
};
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;
use serde::{Deserialize, Serialize};

use crate::crashing::steps;
use crate::engine::Engine;
use crate::sending::{event, here, point, publish, relay, view};
use crate::server::{Act, Seen, Server};
use crate::signing::keys;
use crate::{Told, stories};

stories![keys_are_replaced_while_events_are_on_their_way, what_comes_twice_is_taken_once,];

const CHILD: &str = "LEASEHOLD_RECEIVER_CHILD";
/// At how many of the hooks that taking a request passes a receiver ends.
const KILLS: u64 = 32;

/// A request as it arrived, and where it is taken.
#[derive(Serialize, Deserialize)]
struct Task {
    step: u64,
    standard: bool,
    url: String,
    headers: Vec<(String, String)>,
}

const BODY: &[u8] = b"{\"status\":\"succeeded\"}";

fn scheme(standard: bool) -> Scheme {
    if standard { Scheme::standard() } else { Scheme::euterpe() }
}

fn sign(standard: bool, id: &str) -> leasehold::Result<Vec<(String, String)>> {
    Signer::new(scheme(standard), keys(&[0])).sign(id, BODY)
}

/// The job that an event asks for; its payload is the event's id.
fn job(id: &str) -> leasehold::Result<NewJob> {
    Ok(NewJob::new(JobKind::new("told")?, Json::of(id)?))
}

/// Verifies and takes a request with its job.
async fn take(
    store: &Arc<dyn Store>,
    verifier: &Verifier,
    headers: &[(String, String)],
    body: &[u8],
) -> leasehold::Result<Result<Accepted, Refusal>> {
    let verified = match verifier.verify(headers, body) {
        Ok(verified) => verified,
        Err(why) => return Ok(Err(why)),
    };
    let job = job(verified.event_id())?;
    accept(store.records(), &verified, [job]).await
}

/// The child: takes one request, and ends at the `n`-th hook before that is done.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let task: Task = serde_json::from_str(&task).expect("a task");
    let verifier = Verifier::new(scheme(task.standard), keys(&[0]));
    let story = async {
        let store = leasehold::connect(&task.url).await?;
        leasehold_core::failpoint::arm(task.step);
        take(&store, &verifier, &task.headers, BODY).await
    };
    let taken = crate::runtime().block_on(story).expect("a store that answers");
    assert!(matches!(taken, Ok(Accepted::New(_))), "{taken:?}");
    let told = leasehold_core::failpoint::passed().to_string();
    std::io::stdout().write_all(told.as_bytes()).expect("told");
    Some(ExitCode::SUCCESS)
}

fn receiver(engine: &Engine, step: u64, id: &str) -> Result<(Child, Task), Failed> {
    let standard = step.is_multiple_of(2);
    let task = Task { step, standard, url: engine.url().to_owned(), headers: sign(standard, id)? };
    let mut child = Command::new(std::env::current_exe()?);
    child.env(CHILD, serde_json::to_string(&task)?).stderr(Stdio::null()).stdout(Stdio::piped());
    Ok((child.spawn()?, task))
}

/// The events whose jobs are there, each as often as it has one.
async fn taken(store: &Arc<dyn Store>) -> Result<Vec<String>, Failed> {
    let page = store.jobs(JobFilter::default(), Paging::first(1_000)).await?;
    page.items.iter().map(|job| Ok(serde_json::from_str(job.payload.as_str())?)).collect()
}

/// Proves: WH-2, IDM-3, WQ-11, GLO-2
pub(crate) fn a_receiver_killed_at_any_step_takes_each_event_once(
    engine: &Engine,
) -> Result<(), Failed> {
    let evidence = Evidence::of("receivers killed at each hook", engine.name());
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        let (whole, _) = receiver(engine, 0, "whole")?;
        let hooks: u64 = String::from_utf8(whole.wait_with_output()?.stdout)?.parse()?;
        assert!(hooks > 4, "taking a request passes {hooks} hooks");
        let (mut killed, steps) = (0, steps(hooks, KILLS));
        for steps in steps.chunks(4) {
            let mut children = Vec::new();
            for step in steps {
                children.push(receiver(engine, *step, &format!("step {step}").replace(' ', "_"))?);
            }
            for (mut child, task) in children {
                killed += usize::from(!child.wait()?.success());
                settle(&store, &task).await?;
            }
        }
        assert!(
            killed + 4 + steps.len() / 8 >= steps.len(),
            "only {killed} of {} were killed",
            steps.len()
        );
        let (all, events) = (taken(&store).await?, steps.len() + 1);
        let each: HashSet<&String> = all.iter().collect();
        assert_eq!((all.len(), each.len()), (events, events), "{all:?}");
        let evidence = evidence.count("hooks of taking a request", hooks).count("kills", killed);
        let evidence = evidence.count("events", events);
        evidence.count("events lost", 0_u64).count("events taken twice", 0_u64).tell();
        Ok(())
    })
}

/// What a sender does whose receiver died, and a thief who heard the request: whatever died when, the event
/// is taken once.
async fn settle(store: &Arc<dyn Store>, task: &Task) -> Result<(), Failed> {
    let verifier = Verifier::new(scheme(task.standard), keys(&[0]));
    let heard = take(store, &verifier, &task.headers, BODY).await?;
    let was_free = match heard {
        Ok(Accepted::New(_)) => true,
        Err(Refusal::Replayed) if !task.standard => false,
        Ok(Accepted::Again) if task.standard => false,
        other => return Err(format!("step {}: {other:?}", task.step).into()),
    };
    // The form without a nonce knows the event again, and does nothing.
    let replayed = take(store, &verifier, &task.headers, BODY).await?;
    let fits = match task.standard {
        true => matches!(replayed, Ok(Accepted::Again)),
        false => matches!(replayed, Err(Refusal::Replayed)),
    };
    assert!(fits, "step {}, free {was_free}: {replayed:?}", task.step);
    let id = task.headers.iter().find(|(name, _)| name.ends_with("-id")).map(|(_, id)| id.clone());
    let again = sign(task.standard, &id.ok_or("an id")?)?;
    let again = take(store, &verifier, &again, BODY).await?;
    assert!(matches!(again, Ok(Accepted::Again)), "step {}: {again:?}", task.step);
    Ok(())
}

/// Keys that a test replaces, and the form they sign.
#[derive(Clone, Debug)]
struct Turning {
    scheme: Scheme,
    signs: Arc<Mutex<Keys>>,
    takes: Arc<Mutex<Keys>>,
}

impl Turning {
    fn new(standard: bool) -> Self {
        let keys = || Arc::new(Mutex::new(keys(&[0])));
        Self { scheme: scheme(standard), signs: keys(), takes: keys() }
    }

    fn turn(&self, (signs, takes): (&[usize], &[usize])) {
        *self.signs.lock().expect("no panic under this lock") = keys(signs);
        *self.takes.lock().expect("no panic under this lock") = keys(takes);
    }

    fn verifier(&self) -> Verifier {
        let keys = self.takes.lock().expect("no panic under this lock").clone();
        Verifier::new(self.scheme.clone(), keys)
    }
}

#[async_trait]
impl SignFor for Turning {
    async fn signer(&self, _: &str) -> Result<Signer, Failure> {
        let keys = self.signs.lock().expect("no panic under this lock").clone();
        Ok(Signer::new(self.scheme.clone(), keys))
    }
}

/// Takes what arrives, from the thread of a server.
fn take_here(
    store: &Arc<dyn Store>,
    verifier: &Verifier,
    seen: &Seen,
) -> Result<Accepted, Refusal> {
    let taking = take(store, verifier, &seen.headers, &seen.body);
    let taken = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(taking));
    taken.expect("a store that answers")
}

/// Each first attempt is signed by the keys before a step and not answered well; the next one comes after it.
///
/// Proves: WH-2, WH-5, IDM-3, SEC-2
async fn keys_are_replaced_while_events_are_on_their_way(store: Arc<dyn Store>) -> Told {
    let steps: [(&[usize], &[usize]); 5] =
        [(&[1, 0], &[0]), (&[1, 0], &[0, 1]), (&[1, 0], &[1]), (&[1], &[0, 1]), (&[1], &[1])];
    let mut ids = Vec::new();
    for standard in [false, true] {
        let turning = Turning::new(standard);
        let topic = if standard { "standard" } else { "euterpe" };
        for (at, step) in steps.into_iter().enumerate() {
            let (keys, taking, is_first) = (turning.clone(), store.clone(), Mutex::new(true));
            let server = Server::start(move |seen| {
                if std::mem::take(&mut *is_first.lock().expect("no panic under this lock")) {
                    assert!(keys.verifier().verify(&seen.headers, &seen.body).is_ok(), "step {at}");
                    keys.turn(step);
                    return Act::status(503);
                }
                match take_here(&taking, &keys.verifier(), seen) {
                    Ok(_) => Act::status(204),
                    Err(_) => Act::status(Refusal::STATUS),
                }
            });
            let server = server.await;
            point(&store, topic, server.url()).await?;
            let id = publish(&store, event(topic, "1")?).await?;
            let sink = WebhookSink::builder(store.clone(), turning.clone());
            relay(&store, sink.way_out(WayOut::to(here())))?.run_until_idle().await?;
            let found = view(&store, id).await?;
            assert_eq!((found.state, found.attempts), (EventState::Delivered, 2), "{topic} {at}");
            ids.push(id.to_string());
        }
    }
    let mut all = taken(&store).await?;
    all.sort();
    ids.sort();
    assert_eq!(all, ids);
    Ok(())
}

/// The receiver takes an event and its answer is lost, once by silence and once by an error.
///
/// Proves: IDM-3, TX-6, WH-5
async fn what_comes_twice_is_taken_once(store: Arc<dyn Store>) -> Told {
    let mut ids: Vec<EventId> = Vec::new();
    for (n, standard) in [false, true].into_iter().enumerate() {
        for lost in [Act::Close, Act::status(500)] {
            let (turning, told) = (Turning::new(standard), Arc::new(Mutex::new(Vec::new())));
            let (keys, taking, telling) = (turning.clone(), store.clone(), told.clone());
            let server = Server::start(move |seen| {
                let taken = take_here(&taking, &keys.verifier(), seen);
                let mut told = telling.lock().expect("no panic under this lock");
                told.push(taken.clone());
                match (told.len(), taken) {
                    (1, Ok(_)) => lost.clone(),
                    (_, Ok(_)) => Act::status(204),
                    (_, Err(_)) => Act::status(Refusal::STATUS),
                }
            });
            let server = server.await;
            let topic = format!("twice {n}");
            point(&store, &topic, server.url()).await?;
            let id = publish(&store, event(&topic, "1")?).await?;
            let sink = WebhookSink::builder(store.clone(), turning);
            relay(&store, sink.way_out(here()))?.run_until_idle().await?;
            assert_eq!(view(&store, id).await?.state, EventState::Delivered);
            let told = told.lock().expect("no panic under this lock").clone();
            let fits = matches!(told[..], [Ok(Accepted::New(_)), Ok(Accepted::Again)]);
            assert!(fits, "{told:?}");
            ids.push(id);
        }
    }
    assert_eq!(taken(&store).await?.len(), ids.len());
    Ok(())
}
