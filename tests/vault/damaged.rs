//! What pruned jobs leave behind, beside rows that somebody has damaged.

use std::sync::Arc;

use leasehold::notify::Notifier;
use leasehold::vault::{Binding, Places, VaultError};
use leasehold::{
    ErrorKind, JobKind, Json, Maintenance, NewJob, PutDocument, QueueName, RecordId, StoreExt,
};
use leasehold_postgres::tokio_postgres::{NoTls, connect};
use leasehold_sqlite::rusqlite::Connection;

use crate::engine::Engine;
use crate::keeping::{opened, prune_jobs, two_jobs, vault};
use crate::post::Post;
use crate::sealing::ring;
use crate::telling::{SUBJECT, about, add, run};
use crate::{Told, keeping_rows, runtime};

/// Runs somebody's SQL on the store's tables.
async fn alter(at: &Engine, text: &str) -> Told {
    if at.name() == "sqlite" {
        let text = text.replace("leasehold.", "leasehold_");
        return Ok(Connection::open(at.url())?.execute_batch(&text)?);
    }
    let (server, schema) = at.url().split_once("migrate=auto&schema=").ok_or("a fresh schema")?;
    let (client, connection) = connect(server.trim_end_matches(['?', '&']), NoTls).await?;
    let serving = tokio::spawn(connection);
    client.batch_execute(&text.replace("leasehold.", &format!("{schema}."))).await?;
    drop(client);
    Ok(serving.await??)
}

/// A notification that is none and the secret of a job that cannot be read stay, and those behind them go; also
/// where the secrets cannot be listed at all, the notifications go.
///
/// Proves: ENC-3, QUE-4, GLO-4
pub(crate) fn damaged_rows_keep_no_other_leftovers(at: &Engine) -> Told {
    runtime().block_on(async {
        let store = at.open().await?;
        let notifier = Arc::new(Notifier::new(store.clone(), Post::that_looks_up()));
        add(&store).await?;
        run(&store, &notifier, &about(1, &["ann"])).await?;
        keeping_rows::grow_old(&store).await?;
        keeping_rows::prune_jobs(&store).await?;

        let vault = vault(&store, ring("a"));
        let aside = NewJob::new(JobKind::new("k")?, Json::null()).queue(QueueName::new("aside")?);
        let aside = store.enqueue_one(aside).await?.job();
        let kept = Binding::new(aside.to_string(), "acme", 1);
        vault.put(&kept, b"kept", Places::new()).await?;
        let (done, waiting) = two_jobs(&store, &vault).await?;
        prune_jobs(&store).await?;

        for namespace in ["notify.rows", "vault.secrets"] {
            let first = RecordId::new(namespace, "!")?;
            store.records().put(PutDocument::new(first, Json::parse("{\"x\":1}")?)).await?;
        }
        alter(at, "update leasehold.jobs set kind = '' where queue = 'aside'").await?;
        let broken = "leasehold.documents where namespace = 'vault.secrets' and key = '!'";
        let set = broken.replace(" where", " set body = '{\"broken' where");
        alter(at, &format!("update {set}")).await?;

        let upkeep = Maintenance::new(store.clone());
        let error = upkeep.leftovers().await.expect_err("no secret can be listed");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(notifier.rows(SUBJECT, 1).await?.is_empty(), "the notifications had their turn");
        alter(at, &format!("delete from {broken}")).await?;
        assert_eq!(upkeep.leftovers().await?, 2);
        assert!(matches!(opened(&vault, &done).await, Err(VaultError::Absent)));
        assert_eq!(opened(&vault, &kept).await?, b"kept");
        assert_eq!(opened(&vault, &waiting).await?, b"secret");
        Ok(())
    })
}
