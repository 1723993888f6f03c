//! Owns the load under a wire that is hurt again and again: callers, workers, pauses past leases.

use std::sync::Arc;
use std::time::Duration;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::faults::load::{Load, Tally, Told};
use leasehold_conformance::faults::proxy::{End, Fault, Proxy, Way};
use leasehold_conformance::faults::verdict::judge;
use leasehold_core::{QueueName, Result, Store};
use leasehold_postgres::open;

use crate::{runs, server, with};

/// What is armed one after the other: losses of commits, and cuts and stalls between them.
fn fault(number: u64) -> Fault {
    let way = if number.is_multiple_of(2) { Way::ToServer } else { Way::ToClient };
    let after = number * 37 % 700;
    match number % 10 {
        0 => Fault::ReplyLost,
        1 | 3 | 4 | 7 => Fault::CommitLost,
        2 => Fault::CommitLate(Duration::from_millis(30)),
        5 => Fault::RepliesLost,
        6 => Fault::Cut { way, after, end: End::Reset },
        8 => Fault::Cut { way, after, end: End::Close },
        _ => Fault::Stall { way, after, pause: Duration::from_millis(40) },
    }
}

/// Proves: GLO-2, WQ-3, WQ-5, WQ-11, TX-1, ERR-1
pub(crate) async fn unknown_outcomes_are_settled_by_asking_again() -> Result<()> {
    let wanted = runs("LEASEHOLD_UNKNOWN", 150);
    let seed = runs("LEASEHOLD_SEED", 1);
    let evidence = Evidence::of("wire, under load", "postgres").seeds(seed..seed + 1);
    let direct = server().expect("a server");
    let schema = format!("wire_load_{}", std::process::id());
    let own = format!("pool_size=8&migrate=auto&schema={schema}");
    let calm: Arc<dyn Store> = Arc::new(open(&with(&direct, &own)).await?);
    let proxy = Proxy::before(&direct).await.expect("a proxy");
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(Arc::new(open(&with(proxy.url(), &own)).await?));
    }

    let told = Told::new(Load::new(QueueName::new("wire")?, seed));
    let running = tokio::spawn({
        let told = Arc::clone(&told);
        async move { told.run(&stores).await }
    });
    let counted = || Tally::read(&told.tally.had) + Tally::read(&told.tally.had_not);
    let mut number = 0;
    while counted() < wanted && !told.is_over() {
        let before = proxy.strikes();
        proxy.arm(fault(number));
        number += 1;
        for _ in 0..200 {
            if proxy.strikes() > before || told.is_over() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Somebody gets through, or the same call would be hurt again and again.
        tokio::time::sleep(Duration::from_millis(6)).await;
    }
    proxy.disarm();
    told.end();
    running.await.expect("no panic")?;
    told.drain(&*calm).await?;

    let verdict = judge(&told, &*calm).await?;
    let (had, had_not) = (Tally::read(&told.tally.had), Tally::read(&told.tally.had_not));
    assert!(verdict.wrong.is_empty(), "seed {seed}:\n{}", verdict.wrong.join("\n"));
    assert!(had * 5 >= had + had_not, "{had} had committed, {had_not} had not");
    assert!(had_not * 5 >= had + had_not, "{had} had committed, {had_not} had not");
    let evidence = verdict.add_to(evidence, &told.tally);
    evidence.count("times that the wire was hurt", proxy.strikes()).tell();
    Ok(())
}
