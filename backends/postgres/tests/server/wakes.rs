//! Owns what is heard between processes.

use std::time::Duration;

use leasehold_core::{HintKind, Store, StoreExt};
use leasehold_postgres::open;

use crate::place::{Place, job, soon};

/// Proves: WQ-3
pub(crate) async fn enqueue_wakes_another_process(place: Place) {
    let one = place.store().await;
    let two = open(&place.url("")).await.expect("a second store");
    // What came before it listened is made up for.
    soon("the catch-up", two.hints().listen(HintKind::Jobs).heard()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    for number in 0..3 {
        let mut listener = two.hints().listen(HintKind::Jobs);
        assert!(one.enqueue_one(job(number)).await.expect("enqueued").is_new());
        soon("a wake-up", listener.heard()).await;
    }
}

/// Proves: WQ-3
pub(crate) async fn lost_connection_comes_back(place: Place) {
    let name = format!("app_{}", place.schema);
    let url = place.url(&format!("&migrate=auto&application_name={name}"));
    let store = open(&url).await.expect("a store");
    soon("the catch-up", store.hints().listen(HintKind::Jobs).heard()).await;
    let mut listener = store.hints().listen(HintKind::Jobs);
    let session = place.session().await;
    let ends = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
    assert!(!session.query(ends, &[&name]).await.expect("ended").is_empty());
    soon("the catch-up of the next connection", listener.heard()).await;
}
