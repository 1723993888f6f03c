//! A notifier that is killed at every step of send and mark: nobody is told twice where the provider
//! can be asked or knows a key again, and nobody is forgotten. The children are this program again.

use std::io::Write as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use leasehold::notify::{Notification, Notifier, RowStatus};
use leasehold::{
    CancellationToken, Context, JobId, JobKind, Json, LeaseLength, Maintenance, NewJob, QueueName,
    RetryPolicy, State, Store, StoreExt, Worker,
};
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;

use crate::crashing::steps;
use crate::engine::Engine;
use crate::posting::{Taken, provider};
use crate::server::{Act, Server};

const CHILD: &str = "LEASEHOLD_NOTIFY_CHILD";
/// At how many of the hooks that send and mark pass a notifier ends.
const KILLS: u64 = 48;
const RECIPIENTS: [&str; 2] = ["ann@example.com", "bob@example.com"];
/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

fn worker(
    store: &Arc<dyn Store>,
    queue: &str,
    url: &str,
    looks_up: bool,
) -> leasehold::Result<Worker> {
    let notifier = Notifier::new(store.clone(), provider(url, looks_up).build()?);
    let notifier = Arc::new(notifier);
    Ok(Worker::builder(store.clone())
        .queue(QueueName::new(queue)?)
        .handler(JobKind::new("tell")?, move |context: Context, subject: String| {
            let notifier = notifier.clone();
            async move {
                let payload = Json::of(&subject)?;
                let what = Notification::new(subject, 1);
                let what =
                    RECIPIENTS.iter().fold(what, |it, to| it.recipient(*to, payload.clone()));
                notifier.deliver(&context, &what).await
            }
        })
        .retry(RetryPolicy::new(Duration::ZERO, Duration::ZERO)?)
        .lease(LeaseLength::MIN)
        .upkeep(None)
        .build())
}

/// The child: tells what one queue has, and ends at the `n`-th hook before that is done.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let [step, mode, queue, provider, url] = task.splitn(5, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is step, mode, queue, provider, URL: {task}")
    };
    let story = async {
        let store = leasehold::connect(url).await?;
        let worker = worker(&store, queue, provider, mode == "looks up")?;
        leasehold_core::failpoint::arm(step.parse().expect("a number"));
        worker.run_until_idle().await
    };
    crate::runtime().block_on(story).expect("everybody is told");
    let told = leasehold_core::failpoint::passed().to_string();
    std::io::stdout().write_all(told.as_bytes()).expect("told");
    Some(ExitCode::SUCCESS)
}

/// One job in a queue of its own, and the provider that its recipients are told by.
struct Case {
    queue: String,
    job: JobId,
    looks_up: bool,
}

impl Case {
    async fn add(store: &Arc<dyn Store>, queue: &str, looks_up: bool) -> Result<Self, Failed> {
        let job = NewJob::new(JobKind::new("tell")?, Json::of(queue)?);
        let job = job.queue(QueueName::new(queue)?).max_attempts(9);
        let job = store.enqueue_one(job).await?.job();
        Ok(Self { queue: queue.to_owned(), job, looks_up })
    }

    fn child(&self, engine: &Engine, step: u64, provider: &str) -> std::io::Result<Child> {
        let mode = if self.looks_up { "looks up" } else { "knows keys" };
        let task = format!("{step}|{mode}|{}|{provider}|{}", self.queue, engine.url());
        let program = std::env::current_exe()?;
        Command::new(program).env(CHILD, task).stderr(Stdio::null()).stdout(Stdio::piped()).spawn()
    }

    /// Lets what a dead notifier held lapse, and the job come to its end.
    async fn finish(&self, store: &Arc<dyn Store>, provider: &str) -> Result<(), Failed> {
        let stop = CancellationToken::new();
        let worker = worker(store, &self.queue, provider, self.looks_up)?;
        let upkeep = Maintenance::new(store.clone()).every(Duration::from_millis(200));
        let ended = async {
            let _ends_the_worker = stop.clone().drop_guard();
            let mut look = tokio::time::interval(Duration::from_millis(20));
            loop {
                look.tick().await;
                let job = store.job(self.job).await?.ok_or("the job is gone")?;
                if job.finished_at.is_some() {
                    return Ok::<_, Failed>(job.state);
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, ended);
        let (ran, (), ended) = tokio::join!(worker.run(stop.clone()), upkeep.run(&stop), ended);
        ran?;
        assert_eq!(ended??, State::Succeeded, "{}", self.queue);
        Ok(())
    }

    /// Everybody was told, and once.
    async fn judge(&self, store: &Arc<dyn Store>, taken: &Taken) -> Result<(), Failed> {
        let rows = Notifier::new(store.clone(), provider("http://127.0.0.1/", false).build()?);
        let rows = rows.rows(&self.queue, 1).await?;
        assert_eq!(rows.len(), RECIPIENTS.len(), "{}", self.queue);
        for row in rows {
            assert_eq!(row.status, RowStatus::Sent, "{}", self.queue);
            assert_eq!(taken.count(&row.token), 1, "{} {:?}", self.queue, row.log);
            assert!(row.notification_id.is_some() && row.notified_at.is_some());
        }
        Ok(())
    }
}

/// Proves: DEL-2, DEL-3, DEL-4, DEL-8, WQ-11, GLO-2
pub(crate) fn a_notifier_killed_at_any_step_tells_everybody_once(
    engine: &Engine,
) -> Result<(), Failed> {
    let evidence = Evidence::of("notifiers killed at each hook", engine.name());
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        let (asked, keyed) = (Taken::default(), Taken::default());
        let (by_asking, by_key) = (asked.clone(), keyed.clone());
        let asked_server = Server::start(move |seen| by_asking.answer(seen, false)).await;
        let keyed_server = Server::start(move |seen| by_key.answer(seen, true)).await;
        let place = |case: &Case| match case.looks_up {
            true => (asked_server.url(), &asked),
            false => (keyed_server.url(), &keyed),
        };
        let whole = Case::add(&store, "whole", true).await?;
        let ran = whole.child(engine, 0, &place(&whole).0)?.wait_with_output()?;
        let hooks: u64 = String::from_utf8(ran.stdout)?.parse()?;
        assert!(hooks > 20, "telling two passes {hooks} hooks");
        whole.judge(&store, &asked).await?;
        let steps = steps(hooks, KILLS);
        let (mut killed, mut cases) = (0, Vec::new());
        for some in steps.chunks(4) {
            let mut children = Vec::new();
            for step in some {
                let case = Case::add(&store, &format!("step {step}"), step % 2 == 0).await?;
                children.push(case.child(engine, *step, &place(&case).0)?);
                cases.push(case);
            }
            for mut child in children {
                killed += usize::from(!child.wait()?.success());
            }
        }
        // Without renewals in between, a job passes about as many hooks each time.
        assert!(
            killed + 8 + steps.len() / 8 >= steps.len(),
            "only {killed} of {} were killed",
            steps.len()
        );
        for case in &cases {
            let (url, taken) = place(case);
            case.finish(&store, &url).await?;
            case.judge(&store, taken).await?;
        }
        let evidence = evidence.count("hooks of a job for two", hooks).count("kills", killed);
        let evidence = evidence.count("recipients", RECIPIENTS.len() * (cases.len() + 1));
        evidence.count("told twice", 0_u64).count("told never", 0_u64).tell();
        Ok(())
    })
}

/// Proves: DEL-3, DEL-4, WQ-11, GLO-2
pub(crate) fn a_notifier_killed_while_the_provider_answers_tells_everybody_once(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        for looks_up in [true, false] {
            let taken = Taken::default();
            let (answering, (told, heard)) = (taken.clone(), std::sync::mpsc::channel());
            let server = Server::start(move |seen| {
                let answer = answering.answer(seen, !looks_up);
                // The first who asks is left without an answer, and killed.
                match told.send(()) {
                    Ok(()) => Act::Hang,
                    Err(_) => answer,
                }
            });
            let server = server.await;
            let case = Case::add(&store, &format!("kill {looks_up}"), looks_up).await?;
            let mut child = case.child(engine, 0, &server.url())?;
            let came = tokio::task::spawn_blocking(move || heard.recv_timeout(PATIENCE).is_ok());
            assert!(came.await?, "the message came");
            child.kill()?;
            child.wait()?;
            case.finish(&store, &server.url()).await?;
            case.judge(&store, &taken).await?;
        }
        Ok(())
    })
}
