//! Owns the load under a wire that is hurt again and again: callers, workers, pauses past leases.

use std::sync::Arc;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::faults::load::{Load, Tally};
use leasehold_conformance::faults::proxy::Proxy;
use leasehold_conformance::faults::storm::{Storm, on_the_wire};
use leasehold_core::{QueueName, Result, Store};
use leasehold_postgres::open;

use crate::{runs, server, with};

/// Proves: GLO-2, WQ-3, WQ-5, WQ-11, TX-1, ERR-1
pub(crate) async fn unknown_outcomes_are_settled_by_asking_again() -> Result<()> {
    let wanted = runs("LEASEHOLD_UNKNOWN", 1_000);
    let seed = runs("LEASEHOLD_SEED", 1);
    let evidence = Evidence::of("wire, under load", "postgres").seeds(seed..seed + 1);
    let direct = server().expect("a server");
    let schema = format!("wire_load_{}", std::process::id());
    let own = format!("pool_size=8&migrate=auto&schema={schema}");
    let calm: Arc<dyn Store> = Arc::new(open(&with(&direct, &own)).await?);
    let proxy = Proxy::before(&direct).await.expect("a proxy");
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(open(&with(proxy.url(), &own)).await?));
    }

    // Many at once on four stores, so that a gust of faults strikes different calls.
    let load = Load { callers: 6, workers: 24, ..Load::new(QueueName::new("wire")?, seed) };
    let Storm { told, verdict, .. } = on_the_wire(&proxy, stores, &*calm, load, wanted).await?;
    let read = Tally::read;
    let (had, had_not) = (read(&told.tally.had), read(&told.tally.had_not));
    let all = had + had_not + read(&told.tally.either);
    assert!(verdict.wrong.is_empty(), "seed {seed}:\n{}", verdict.wrong.join("\n"));
    assert!(had * 5 >= all, "{had} of {all} had committed, {had_not} had not");
    assert!(had_not * 5 >= all, "{had} of {all} had committed, {had_not} had not");
    let evidence = verdict.add_to(evidence, &told.tally);
    evidence.count("times that the wire was hurt", proxy.strikes()).tell();
    Ok(())
}
