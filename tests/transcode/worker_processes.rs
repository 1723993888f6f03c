//! Two worker processes of the transcode service, of which one is killed. A worker is this program again.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use leasehold::{CancellationToken, Maintenance, State, Store, StoreExt};
use libtest_mimic::Failed;
use tokio::sync::watch;

use crate::bucket::Bucket;
use crate::crew;
use crate::engine::Engine;
use crate::requester::{
    PATIENCE, Requester, assert_flac, credentials, in_bucket, order, settings_of, wav,
};
use crate::server::Server;
use crate::service::work;

const CHILD: &str = "LEASEHOLD_TRANSCODE_CHILD";
/// Set for a child that ends with its input, as those of the example do.
const IN_CREW: &str = "LEASEHOLD_TRANSCODE_CREW";

/// The child: works until it is killed.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let (folder, url) = task.split_once('|').expect("a task is folder, URL");
    let settings = settings_of(PathBuf::from(folder));
    crate::runtime().block_on(async {
        let store = leasehold::connect(url).await.expect("a store");
        let shutdown = CancellationToken::new();
        if std::env::var_os(IN_CREW).is_some() {
            let stop = shutdown.clone();
            tokio::spawn(async move {
                crew::orphaned().await;
                stop.cancel();
            });
        }
        work(store, &settings, shutdown).await.expect("it works until it is ended");
        // The thread that reads the input would hold the process.
        std::process::exit(0);
    });
    Some(ExitCode::SUCCESS)
}

/// What both stories begin with.
struct Stage {
    store: Arc<dyn Store>,
    bucket: Bucket,
    requester: Requester,
    server: Server,
}

impl Stage {
    async fn set(engine: &Engine) -> Result<Self, Failed> {
        let (store, bucket) = (engine.open().await?, Bucket::open().await);
        wav(&bucket.file("in.wav"));
        bucket.admit("key", "secret", u32::MAX);
        let requester = Requester::giving(vec![credentials("key", "secret")]);
        let server = requester.serve().await;
        Ok(Self { store, bucket, requester, server })
    }
}

/// What starts a worker process on a store.
fn worker_process(folder: &Path, engine: &Engine) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(CHILD, format!("{}|{}", folder.display(), engine.url()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Two worker processes, of which one is killed with a job in hand.
///
/// Proves: WQ-11, GLO-2, TX-4, WH-5
pub(crate) fn two_worker_processes_transcode_and_tell_all_of_it_though_one_is_killed(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let Stage { store, bucket, requester, server } = Stage::set(engine).await?;
        let mut ids = Vec::new();
        for n in 0..6 {
            let to = in_bucket(&bucket, &format!("out {n}.flac"));
            let job = order(&server, &in_bucket(&bucket, "in.wav"), &to)?;
            ids.push(store.enqueue_one(job).await?.job());
        }
        let start = || worker_process(bucket.folder(), engine)?.spawn();
        let (mut killed, mut other) = (start()?, start()?);
        // As soon as anything is told of, a job is in hand or just over.
        requester.until(|it| ids.iter().any(|id| !it.told(*id).is_empty())).await?;
        killed.kill()?;
        killed.wait()?;
        let stop = CancellationToken::new();
        let upkeep = Maintenance::new(store.clone()).every(Duration::from_millis(200));
        let all = async {
            let _ends_the_upkeep = stop.clone().drop_guard();
            requester.until(|it| ids.iter().all(|id| it.is_done(*id))).await
        };
        let ((), all) = tokio::join!(upkeep.run(&stop), all);
        all?;
        other.kill()?;
        other.wait()?;
        for (n, id) in ids.iter().enumerate() {
            let view = store.job(*id).await?.ok_or("gone")?;
            assert_eq!(view.state, State::Succeeded);
            assert_flac(&bucket.file(&format!("out {n}.flac")));
            let seqs: Vec<i64> =
                requester.told(*id).iter().filter_map(|event| event["seq"].as_i64()).collect();
            let whole: Vec<i64> = (1..=i64::try_from(seqs.len())?).collect();
            assert_eq!(seqs, whole, "every transition is told, once");
        }
        Ok(())
    })
}

/// Both worker processes are killed before there is anything to do: those in their place do it.
///
/// Proves: WQ-11
pub(crate) fn worker_processes_that_are_killed_are_started_again(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let Stage { store, bucket, requester, server } = Stage::set(engine).await?;
        let started = watch::Sender::new(Vec::new());
        let start = || {
            let mut command =
                tokio::process::Command::from(worker_process(bucket.folder(), engine)?);
            command.env(IN_CREW, "1").stdin(Stdio::piped()).kill_on_drop(true);
            let child = command.spawn()?;
            started.send_modify(|started| started.extend(child.id()));
            Ok(child)
        };
        let stop = CancellationToken::new();
        let story = async {
            let _ends_the_crew = stop.clone().drop_guard();
            for pid in so_many(&started, 2).await? {
                let killed = Command::new("kill").args(["-9", &pid.to_string()]).status()?;
                assert!(killed.success(), "{pid}");
            }
            so_many(&started, 4).await?;
            let to = in_bucket(&bucket, "out.flac");
            let job = order(&server, &in_bucket(&bucket, "in.wav"), &to)?;
            let id = store.enqueue_one(job).await?.job();
            requester.until(|it| it.is_done(id)).await?;
            assert_flac(&bucket.file("out.flac"));
            Ok::<_, Failed>(())
        };
        let ((), story) = tokio::join!(crew::keep(2, start, &stop), story);
        story?;
        assert_eq!(started.borrow().len(), 4, "those that were told to end are not started again");
        Ok(())
    })
}

/// Waits for so many processes; who they are.
async fn so_many(started: &watch::Sender<Vec<u32>>, number: usize) -> Result<Vec<u32>, Failed> {
    let mut started = started.subscribe();
    let found = tokio::time::timeout(PATIENCE, started.wait_for(|it| it.len() == number)).await??;
    Ok(found.clone())
}
