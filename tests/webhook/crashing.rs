//! A sender that is killed at every step of a delivery: the receiver takes each event exactly once,
//! and none is lost. The children are this program again.

use std::io::Write as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::memory::MemoryStore;
use leasehold::webhook::{Accepted, Scheme, Verifier, accept};
use leasehold::{EventId, EventState, JobKind, Json, NewJob, Store, Topic};
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;

use crate::engine::Engine;
use crate::sending::{event, local, point, publish, relay, until};
use crate::server::{Act, Seen, Server};
use crate::signing::keys;

const CHILD: &str = "LEASEHOLD_WEBHOOK_CHILD";
/// At how many of the hooks that a delivery passes a sender ends.
const KILLS: u64 = 64;

/// The hooks at which a process ends, of so many that it passes: all of them in the nightly programme.
pub(crate) fn steps(hooks: u64, most: u64) -> Vec<u64> {
    let all = std::env::var("LEASEHOLD_DELIVERY_KILLS").is_ok_and(|kills| kills == "all");
    let stride = if all { 1 } else { hooks.div_ceil(most) };
    (1..=hooks).step_by(usize::try_from(stride).expect("a stride")).collect()
}

/// The child: relays one topic until it is idle, and ends at the `n`-th hook before that.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let [step, topic, url] = task.splitn(3, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is step, topic, URL: {task}")
    };
    let story = async {
        let store = leasehold::connect(url).await?;
        let relay = relay(&store, local(&store))?.topics([Topic::new(topic)?]);
        leasehold_core::failpoint::arm(step.parse().expect("a number"));
        relay.run_until_idle().await
    };
    let tried = crate::runtime().block_on(story);
    assert!(matches!(tried, Ok(1)), "the sender ended otherwise: {tried:?}");
    let told = leasehold_core::failpoint::passed().to_string();
    std::io::stdout().write_all(told.as_bytes()).expect("told");
    Some(ExitCode::SUCCESS)
}

fn sender(engine: &Engine, step: u64, topic: &str) -> std::io::Result<Child> {
    let task = format!("{step}|{topic}|{}", engine.url());
    let program = std::env::current_exe()?;
    Command::new(program).env(CHILD, task).stderr(Stdio::null()).stdout(Stdio::piped()).spawn()
}

/// Verifies and takes what arrives, as a receiver does, and counts how often each event was new.
#[derive(Clone)]
struct Receiver {
    store: Arc<MemoryStore>,
    new: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), new: Arc::default() }
    }

    fn take(&self, seen: &Seen) {
        let verifier = Verifier::new(Scheme::euterpe(), keys(&[0]));
        let verified = verifier.verify(&seen.headers, &seen.body).expect("well signed");
        let job = NewJob::new(JobKind::new("told").expect("a kind"), Json::null());
        // The in-memory store never waits.
        let taken = futures_util::FutureExt::now_or_never(async {
            accept(&*self.store, &verified, [job]).await
        });
        match taken.expect("at once").expect("stored") {
            Ok(Accepted::New(_)) => {
                self.new.lock().expect("no panic under this lock").push(verified.event_id().into());
            }
            Ok(Accepted::Again) => {}
            Err(why) => panic!("an honest sender is refused: {why}"),
        }
    }

    fn took(&self, id: EventId) -> usize {
        let new = self.new.lock().expect("no panic under this lock");
        new.iter().filter(|event| **event == id.to_string()).count()
    }
}

/// Lets what a dead sender held lapse, then delivers the rest.
async fn finish(store: &Arc<dyn Store>, ids: &[EventId]) -> Result<(), Failed> {
    let stop = leasehold::CancellationToken::new();
    let relay = relay(store, local(store))?;
    let upkeep = leasehold::Maintenance::new(store.clone()).every(Duration::from_millis(200));
    let story = async {
        let _ends_the_relay = stop.clone().drop_guard();
        until(store, ids, EventState::Delivered).await
    };
    let (ended, (), told) = tokio::join!(relay.run(stop.clone()), upkeep.run(&stop), story);
    ended?;
    told
}

/// Proves: TX-4, TX-6, WQ-11, GLO-2, WH-5
pub(crate) fn a_sender_killed_at_any_step_loses_and_doubles_nothing(
    engine: &Engine,
) -> Result<(), Failed> {
    let evidence = Evidence::of("senders of webhooks killed at each hook", engine.name());
    crate::runtime().block_on(async {
        let receiver = Receiver::new();
        let taking = receiver.clone();
        let server = Server::start(move |seen| {
            taking.take(seen);
            Act::status(204)
        });
        let server = server.await;
        let store = engine.open().await?;
        point(&store, "whole", server.url()).await?;
        let mut ids = vec![publish(&store, event("whole", "0")?).await?];
        let whole = sender(engine, 0, "whole")?.wait_with_output()?;
        let hooks: u64 = String::from_utf8(whole.stdout)?.parse()?;
        assert!(hooks > 20, "a delivery passes {hooks} hooks");
        let (mut killed, steps) = (0, steps(hooks, KILLS));
        for steps in steps.chunks(4) {
            let mut senders = Vec::new();
            for step in steps {
                let (step, topic) = (*step, format!("step {step}"));
                point(&store, &topic, server.url()).await?;
                ids.push(publish(&store, event(&topic, &step.to_string())?.max_attempts(9)).await?);
                senders.push(sender(engine, step, &topic)?);
            }
            for mut sender in senders {
                killed += usize::from(!sender.wait()?.success());
            }
        }
        // Without renewals in between, a delivery passes about as many hooks each time.
        assert!(
            killed + 8 + steps.len() / 8 >= steps.len(),
            "only {killed} of {} were killed",
            steps.len()
        );
        finish(&store, &ids).await?;
        for id in &ids {
            assert_eq!(receiver.took(*id), 1, "event {id}");
        }
        let deliveries = server.seen().len();
        assert!(deliveries > ids.len(), "some were sent twice, and taken once");
        let evidence = evidence.count("hooks of a delivery", hooks).count("kills", killed);
        let evidence = evidence.count("events", ids.len()).count("requests", deliveries);
        evidence.count("events lost", 0_u64).count("events taken twice", 0_u64).tell();
        Ok(())
    })
}

/// Proves: TX-6, WQ-11, GLO-2, IDM-3
pub(crate) fn a_sender_killed_while_the_receiver_answers_doubles_nothing(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        for (n, answers) in [false, true, false, true].into_iter().enumerate() {
            let receiver = Receiver::new();
            let (taking, (told, heard)) = (receiver.clone(), std::sync::mpsc::channel());
            let server = Server::start(move |seen| {
                taking.take(seen);
                let is_first = told.send(()).is_ok();
                match is_first && !answers {
                    true => Act::After(Duration::from_secs(60), 204),
                    false => Act::status(204),
                }
            });
            let server = server.await;
            let topic = format!("kill {n}");
            point(&store, &topic, server.url()).await?;
            let id = publish(&store, event(&topic, "1")?.max_attempts(9)).await?;
            let mut child = sender(engine, 0, &topic)?;
            let came = tokio::task::spawn_blocking(move || {
                heard.recv_timeout(Duration::from_secs(20)).is_ok()
            });
            assert!(came.await?, "the request came");
            child.kill()?;
            child.wait()?;
            finish(&store, &[id]).await?;
            assert_eq!(receiver.took(id), 1);
        }
        Ok(())
    })
}
