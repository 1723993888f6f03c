//! Owns the settle lane: settlements that come while one batch is in flight go together in the
//! next. A lost reply is answered by sending the same settlement again.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Settlement, Store, StoreExt};
use tokio::sync::{mpsc, oneshot};

use super::lane::Leases;

const BATCH: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

type Item = (Settlement, oneshot::Sender<()>);

/// Hands settlements to the lane; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Settler(mpsc::Sender<Item>);

impl Settler {
    pub(super) fn start(store: Arc<dyn Store>, leases: Arc<Leases>) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH);
        tokio::spawn(settle_all(store, leases, receiver));
        Self(sender)
    }

    /// Returns once the settlement is stored or can no longer be.
    pub(super) async fn settle(&self, settlement: Settlement) {
        let (done, ended) = oneshot::channel();
        if self.0.send((settlement, done)).await.is_ok() {
            let _ = ended.await;
        }
    }
}

async fn settle_all(store: Arc<dyn Store>, leases: Arc<Leases>, mut inbox: mpsc::Receiver<Item>) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.recv_many(&mut batch, BATCH).await > 0 {
        while !batch.is_empty() {
            let all = batch.iter().map(|(settlement, _)| settlement.clone()).collect();
            match store.settle(all).await {
                Ok(answers) => {
                    for ((settlement, done), answer) in
                        std::mem::take(&mut batch).into_iter().zip(answers)
                    {
                        match answer {
                            Err(error) if error.is_retryable() => batch.push((settlement, done)),
                            answer => end(&leases, &settlement, done, answer.err()),
                        }
                    }
                }
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, "settlement is sent again");
                }
                Err(_) => {
                    for (settlement, done) in std::mem::take(&mut batch) {
                        let answer = store.settle_one(settlement.clone()).await;
                        end(&leases, &settlement, done, answer.err());
                    }
                }
            }
            batch.retain(|(settlement, _)| leases.ends(&settlement.fence).is_some());
            if !batch.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn end(
    leases: &Leases,
    settlement: &Settlement,
    done: oneshot::Sender<()>,
    error: Option<leasehold_core::Error>,
) {
    leases.remove(&settlement.fence);
    if let Some(error) = error {
        tracing::error!(job = %settlement.fence.job(), %error, "settlement refused");
    }
    let _ = done.send(());
}
