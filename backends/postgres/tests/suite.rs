//! Owns the run of the conformance scenarios on this engine: as it is, and as behind a pooler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_conformance::{Harness, harness, start};
use leasehold_core::lab::LabStore;
use leasehold_postgres::PostgresStore;
use libtest_mimic::Arguments;

fn schemas(name: &'static str, url: String) -> Arc<dyn Harness> {
    let made = AtomicU64::new(0);
    harness(name, move || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        let schema = format!("suite_{}_{}_{number}", name.replace('-', "_"), std::process::id());
        let url = url.clone();
        async move {
            Ok(Arc::new(PostgresStore::lab(&url, &schema, Some(start())).await?)
                as Arc<dyn LabStore>)
        }
    })
}

fn main() {
    let arguments = Arguments::from_args();
    let names = ["postgres", "postgres-pooled"];
    let Ok(url) = std::env::var("LEASEHOLD_TEST_POSTGRES_URL") else {
        assert!(
            std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_none(),
            "LEASEHOLD_TEST_POSTGRES_URL names no server"
        );
        let trials = names.iter().flat_map(|name| leasehold_conformance::ignored(name)).collect();
        libtest_mimic::run(&arguments, trials).exit();
    };
    let join = if url.contains('?') { '&' } else { '?' };
    let urls =
        [format!("{url}{join}pool_size=4"), format!("{url}{join}pool_size=4&pooler=transaction")];
    let mut trials = Vec::new();
    for (name, url) in names.into_iter().zip(urls) {
        trials.extend(leasehold_conformance::trials(&schemas(name, url)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
