//! Owns the run of the conformance scenarios on this engine: as it is, and as behind a pooler.

use std::sync::Arc;

use leasehold_conformance::{Harness, harness, start};
use leasehold_core::lab::LabStore;
use leasehold_postgres::LabSchemas;
use libtest_mimic::Arguments;

fn schemas(name: &'static str, url: String) -> Arc<dyn Harness> {
    let schemas = Arc::new(LabSchemas::new(url, format!("suite_{}", name.replace('-', "_"))));
    harness(name, move || {
        let schemas = Arc::clone(&schemas);
        async move { Ok(Arc::new(schemas.store(start()).await?) as Arc<dyn LabStore>) }
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
