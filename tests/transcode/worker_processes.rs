//! Two worker processes of the transcode service, of which one is killed. A worker is this program again.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use leasehold::{CancellationToken, Maintenance, State, StoreExt};
use libtest_mimic::Failed;

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::requester::{
    PATIENCE, Requester, assert_flac, credentials, in_bucket, order, settings_of, wav,
};
use crate::service::work;

const CHILD: &str = "LEASEHOLD_TRANSCODE_CHILD";

/// The child: works until it is killed.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let (folder, url) = task.split_once('|').expect("a task is folder, URL");
    let settings = settings_of(PathBuf::from(folder));
    crate::runtime().block_on(async {
        let store = leasehold::connect(url).await.expect("a store");
        work(store, &settings, CancellationToken::new())
            .await
            .expect("it works until it is killed");
    });
    Some(ExitCode::SUCCESS)
}

/// Two worker processes, of which one is killed with a job in hand.
///
/// Proves: WQ-11, GLO-2, TX-4, WH-5
pub(crate) fn two_worker_processes_transcode_and_tell_all_of_it_though_one_is_killed(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        let bucket = Bucket::open().await;
        wav(&bucket.file("in.wav"));
        bucket.admit("key", "secret", u32::MAX);
        let requester = Requester::giving(vec![credentials("key", "secret")]);
        let server = requester.serve().await;
        let mut ids = Vec::new();
        for n in 0..6 {
            let to = in_bucket(&bucket, &format!("out {n}.flac"));
            let job = order(&server, &in_bucket(&bucket, "in.wav"), &to)?;
            ids.push(store.enqueue_one(job).await?.job());
        }
        let start = || {
            let task = format!("{}|{}", bucket.folder().display(), engine.url());
            let program = std::env::current_exe()?;
            let mut command = Command::new(program);
            command.env(CHILD, task).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let (mut killed, mut other) = (start()?, start()?);
        let until = |least: usize| {
            let (requester, ids) = (requester.clone(), ids.clone());
            async move {
                let mut look = tokio::time::interval(Duration::from_millis(5));
                loop {
                    look.tick().await;
                    let told = ids.iter().filter(|id| {
                        requester.told(**id).last().is_some_and(|event| event["to"] == "succeeded")
                    });
                    let begun = ids.iter().filter(|id| !requester.told(**id).is_empty()).count();
                    if told.count() >= least && begun > 0 {
                        return;
                    }
                }
            }
        };
        // As soon as anything is told of, a job is in hand or just over.
        tokio::time::timeout(PATIENCE, until(0)).await?;
        killed.kill()?;
        killed.wait()?;
        let stop = CancellationToken::new();
        let upkeep = Maintenance::new(store.clone()).every(Duration::from_millis(200));
        let all = async {
            let _ends_the_upkeep = stop.clone().drop_guard();
            tokio::time::timeout(PATIENCE, until(ids.len())).await
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
