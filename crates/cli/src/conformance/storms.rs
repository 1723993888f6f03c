//! Owns the loads under faults of a run: which there are on which engine, and that one which cannot be is
//! told of. Refuses to judge them.

use std::sync::Arc;

use leasehold::{QueueName, Store, connect};
use leasehold_conformance::faults::load::Load;
use leasehold_conformance::faults::proxy::Proxy;
use leasehold_conformance::faults::storm::{Storm, of_answers, on_the_wire};
use leasehold_conformance::report::Report;

use super::ground::Ground;

/// Plays every load that can be played here.
pub(super) fn play(report: &mut Report, ground: &Arc<Ground>, seed: u64, unknown: u64) {
    let own = Arc::clone(ground);
    report.storm("answers lost", seed, move || block(lose_answers(own, seed, unknown)));
    let Some(server) = ground.server() else { return };
    // The way through a proxy must be plain, or nothing could be aimed at.
    if let Err(why) = block(async { proxy(server).await.map(drop) }) {
        report.notes.push(format!("The wire was not hurt: {why}."));
        return;
    }
    let own = Arc::clone(ground);
    report.storm("wire hurt", seed, move || block(hurt_the_wire(own, seed, unknown)));
}

fn block<T>(it: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(it)
}

async fn lose_answers(ground: Arc<Ground>, seed: u64, unknown: u64) -> Result<Storm, String> {
    let storm = async {
        let store = connect(&ground.url().await?).await?;
        of_answers(store, load(seed)?, unknown).await
    };
    storm.await.map_err(|error| error.to_string())
}

async fn hurt_the_wire(ground: Arc<Ground>, seed: u64, unknown: u64) -> Result<Storm, String> {
    let url = ground.url().await.map_err(|error| error.to_string())?;
    let calm = connect(&url).await.map_err(|error| error.to_string())?;
    let proxy = proxy(&url).await?;
    let storm = async {
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..2 {
            stores.push(connect(proxy.url()).await?);
        }
        on_the_wire(&proxy, stores, &*calm, load(seed)?, unknown).await
    };
    storm.await.map_err(|error| error.to_string())
}

async fn proxy(url: &str) -> Result<Proxy, String> {
    Proxy::before(url).await.map_err(|error| error.to_string())
}

fn load(seed: u64) -> leasehold::Result<Load> {
    Ok(Load::new(QueueName::new("storm")?, seed))
}
