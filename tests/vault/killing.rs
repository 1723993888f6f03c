//! A rewrap that is killed again and again: each secret is under one key or the other, and in the end
//! all are under the new one. The children are this program again.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use leasehold::Store;
use leasehold::vault::Places;
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;
use secrecy::ExposeSecret;

use crate::engine::Engine;
use crate::keeping::{actor, numbered, vault};
use crate::sealing::{id, ring};

const CHILD: &str = "LEASEHOLD_VAULT_CHILD";

/// How many secrets; the nightly programme sets more.
fn secrets() -> u32 {
    let set = std::env::var("LEASEHOLD_VAULT_SECRETS").ok();
    set.map_or(150, |text| text.parse().expect("LEASEHOLD_VAULT_SECRETS is a number"))
}

/// The child: rewraps, and ends at the `n`-th hook before that is done.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let [step, from, to, url] = task.splitn(4, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is step, from, to, URL: {task}")
    };
    let story = async {
        let store = leasehold::connect(url).await.expect("a store");
        let keys = ring(to).and(id(from), [from.as_bytes()[0]; 32]).expect("a ring");
        leasehold_core::failpoint::arm(step.parse().expect("a number"));
        vault(&store, keys).rewrap().await.expect("rewrapped")
    };
    let done = crate::runtime().block_on(story);
    assert_eq!(done.unreadable, 0);
    Some(ExitCode::SUCCESS)
}

/// Proves: ENC-3, GLO-2
pub(crate) fn a_rewrap_killed_at_any_row_goes_on(engine: &Engine) -> Result<(), Failed> {
    let evidence = Evidence::of("rewraps killed between three rotations", engine.name());
    let (count, mut all_kills) = (secrets(), 0_u64);
    let runtime = crate::runtime();
    let store: Arc<dyn Store> = runtime.block_on(engine.open())?;
    let secret = |n: u32| format!("secret {n}").into_bytes();
    runtime.block_on(async {
        for n in 0..count {
            vault(&store, ring("a")).put(&numbered(n), &secret(n), Places::new()).await?;
        }
        Ok::<_, Failed>(())
    })?;
    let program = std::env::current_exe()?;
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d")] {
        let mut kills = 0;
        // Each child gets a little further than the last; the step is odd to every page and row.
        for step in (7_u64..).step_by(usize::try_from(count / 3).unwrap_or(50) + 1) {
            let task = format!("{step}|{from}|{to}|{}", engine.url());
            let mut child = Command::new(&program);
            let child = child.env(CHILD, task).stderr(Stdio::null()).stdout(Stdio::null());
            if child.status()?.success() {
                break;
            }
            kills += 1;
            let some = count / 50 + 1;
            runtime.block_on(all_open((&store, from, to), count, some, &secret))?;
        }
        assert!(kills > 2, "only {kills} were killed");
        all_kills += kills;
        runtime.block_on(async {
            let keys = ring(to).and(id(from), [from.as_bytes()[0]; 32])?;
            let keeper = vault(&store, keys);
            assert_eq!(
                (keeper.uses(&id(from)).await?, keeper.uses(&id(to)).await?),
                (0, count.into())
            );
            keeper.retire(&id(from), actor()).await?;
            all_open((&store, to, to), count, 1, &secret).await
        })?;
    }
    let evidence = evidence.count("secrets", count).count("rotations", 3_u64);
    let evidence = evidence.count("kills", all_kills).count("unreadable", 0_u64);
    evidence.count("under a retired key", 0_u64).tell();
    Ok(())
}

/// Opens every `step`-th secret.
async fn all_open(
    (store, from, to): (&Arc<dyn Store>, &str, &str),
    count: u32,
    step: u32,
    secret: &impl Fn(u32) -> Vec<u8>,
) -> Result<(), Failed> {
    let keys = ring(to).and(id(from), [from.as_bytes()[0]; 32])?;
    let vault = vault(store, keys);
    for n in (0..count).step_by(usize::try_from(step)?) {
        assert_eq!(vault.open(&numbered(n)).await?.expose_secret(), secret(n));
    }
    Ok(())
}
