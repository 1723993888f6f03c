//! Owns the sweep of one verb: the wire is hurt at each of many places, the store is looked at, and the
//! verb is asked for again.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::faults::proxy::{End, Fault, Proxy, Way};
use leasehold_conformance::sweep::{prepare, run, start};
use leasehold_core::lab::{Dump, LabStore};
use leasehold_core::{ErrorKind, Result};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, NoTls};

use crate::{runs, server, with};

/// What all verbs came to.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    points: usize,
    cuts: usize,
    stalls: usize,
    commits: usize,
    mended: usize,
    failed: usize,
    had: usize,
    had_not: usize,
}

static SUM: Mutex<Option<(Evidence, Sum)>> = Mutex::new(None);

/// Prints what all verbs came to.
pub(crate) fn tell() {
    let Some((evidence, sum)) = SUM.lock().expect("a sum").take() else { return };
    evidence
        .count("points", sum.points)
        .count("connections cut or reset at a byte", sum.cuts)
        .count("stalls", sum.stalls)
        .count("commits or replies to them lost", sum.commits)
        .count("calls that mended themselves", sum.mended)
        .count("calls that failed untouched", sum.failed)
        .count("unknown outcomes that had committed", sum.had)
        .count("unknown outcomes that had not", sum.had_not)
        .tell();
}

/// One verb's own schema, reached directly and through a proxy.
struct Place {
    schema: String,
    direct: String,
    proxy: Proxy,
    hurt: String,
    watcher: Client,
}

impl Place {
    async fn new(verb: &str) -> Self {
        let direct = server().expect("a server");
        let schema = format!("wire_{verb}_{}", std::process::id());
        let proxy = Proxy::before(&direct).await.expect("a proxy");
        let hurt = with(proxy.url(), &format!("pool_size=2&application_name={schema}"));
        let (watcher, connection) =
            leasehold_postgres::tokio_postgres::connect(&direct, NoTls).await.expect("a session");
        tokio::spawn(connection);
        Self { schema, direct, proxy, hurt, watcher }
    }

    /// A store as the verb begins on it.
    async fn anew(&self, verb: &str) -> Result<PostgresStore> {
        let store = PostgresStore::lab(&self.direct, &self.schema, Some(start())).await?;
        prepare(&store, verb).await?;
        Ok(store)
    }

    /// A store behind the proxy that has talked to its server already.
    async fn behind(&self) -> Result<PostgresStore> {
        let store = PostgresStore::lab_again(&self.hurt, &self.schema, Some(start())).await?;
        run(&store, "stats").await?;
        Ok(store)
    }

    /// Waits until the server has noticed that the connections are gone, and rolled back or committed.
    async fn until_gone(&self) {
        self.proxy.end_all();
        let end = Instant::now() + Duration::from_secs(60);
        let text = "select count(*) from pg_stat_activity where application_name = $1";
        let gone = async || {
            let row = self.watcher.query_one(text, &[&self.schema]).await.expect("counted");
            row.get::<_, i64>(0) == 0
        };
        while !gone().await {
            assert!(Instant::now() < end, "the sessions of {} stay", self.schema);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The places of one verb: so many bytes each way, and each way to lose a commit.
fn faults(bytes: [u64; 2]) -> Vec<Fault> {
    let each_way = runs("LEASEHOLD_WIRE_POINTS", 2);
    let mut faults = vec![
        Fault::CommitLost,
        Fault::CommitLate(Duration::from_millis(20)),
        Fault::ReplyLost,
        Fault::RepliesLost,
        Fault::Delay(Duration::from_millis(1)),
    ];
    for (way, bytes) in [Way::ToServer, Way::ToClient].into_iter().zip(bytes) {
        let pause = Duration::from_millis(30);
        faults.push(Fault::Stall { way, after: bytes / 2, pause });
        let step = (bytes / each_way).max(1) as usize;
        for after in (0..bytes).step_by(step) {
            let end = if (after / step as u64).is_multiple_of(2) { End::Close } else { End::Reset };
            faults.push(Fault::Cut { way, after, end });
        }
    }
    faults
}

/// Proves: ERR-1, GLO-2, TX-1, WQ-11
pub(crate) async fn hurt_anywhere_is_all_or_nothing(verb: &'static str) -> Result<()> {
    let place = Place::new(verb).await;
    let direct = place.anew(verb).await?;
    let before = direct.dump().await?;
    let store = place.behind().await?;
    place.proxy.arm(Fault::Delay(Duration::ZERO));
    run(&store, verb).await?;
    let bytes = [Way::ToServer, Way::ToClient].map(|way| place.proxy.gone(way));
    let after = direct.dump().await?;
    assert!(!before.difference(&after).is_empty(), "{verb} changes nothing");
    place.proxy.disarm();
    drop(store);
    place.until_gone().await;

    let mut sum = Sum::default();
    for fault in faults(bytes) {
        hurt(&place, verb, fault, (&before, &after), &mut sum).await?;
    }
    // The end of a replay is tried by one statement first, which leaves it alone and commits nothing: the
    // losses strike that one, so what follows it is never struck after its commit.
    let has_both = sum.had > 0 || verb == "end_replay";
    assert!(has_both && sum.had_not > 0, "{verb}: one branch was never met: {sum:?}");
    let mut all = SUM.lock().expect("a sum");
    let (_, total) =
        all.get_or_insert_with(|| (Evidence::of("wire, verb by verb", "postgres"), Sum::default()));
    *total = Sum {
        points: total.points + sum.points,
        cuts: total.cuts + sum.cuts,
        stalls: total.stalls + sum.stalls,
        commits: total.commits + sum.commits,
        mended: total.mended + sum.mended,
        failed: total.failed + sum.failed,
        had: total.had + sum.had,
        had_not: total.had_not + sum.had_not,
    };
    Ok(())
}

/// Runs the verb once with one fault, looks, and asks again.
async fn hurt(
    place: &Place,
    verb: &str,
    fault: Fault,
    (before, after): (&Dump, &Dump),
    sum: &mut Sum,
) -> Result<()> {
    let direct = place.anew(verb).await?;
    let store = place.behind().await?;
    let strikes = place.proxy.strikes();
    place.proxy.arm(fault);
    let told = run(&store, verb).await;
    place.proxy.disarm();
    drop(store);
    place.until_gone().await;

    let found = direct.dump().await?;
    let (undone, done) = (found.difference(before), found.difference(after));
    assert!(done.is_empty() || undone.is_empty(), "{verb}, {fault:?}: half is done:\n{done}");
    let had = done.is_empty();
    match told {
        Ok(()) => {
            assert!(had, "{verb}, {fault:?}: told done, and is not:\n{done}");
            sum.mended += 1;
        }
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => match had {
            true => sum.had += 1,
            false => sum.had_not += 1,
        },
        Err(error) => {
            assert!(error.is_retryable(), "{verb}, {fault:?}: {error}");
            assert!(!had, "{verb}, {fault:?}: told undone, and is done: {error}");
            sum.failed += 1;
        }
    }
    run(&direct, verb).await?;
    let again = direct.dump().await?.difference(after);
    assert!(again.is_empty(), "{verb} asked again after {fault:?}:\n{again}");
    sum.points += 1;
    let struck = usize::try_from(place.proxy.strikes() - strikes).unwrap_or(0);
    match fault {
        Fault::Cut { .. } => sum.cuts += struck,
        Fault::Stall { .. } => sum.stalls += struck,
        Fault::Delay(_) => {}
        _ => sum.commits += struck,
    }
    Ok(())
}
