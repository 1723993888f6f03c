//! The view for other languages on both engines: no insert breaks an invariant, hostile ones in
//! thousands and those of real programs in every form.
//!
//! PostgreSQL is found by `LEASEHOLD_TEST_POSTGRES_URL`; without it its trials are shown as ignored, and
//! are a failure when `LEASEHOLD_REQUIRE_ENGINES` is set. The same holds of the programs and
//! `LEASEHOLD_REQUIRE_CLIENTS`, which `scripts/clients` sets.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[path = "view/clients.rs"]
mod clients;
#[path = "view/crowd.rs"]
mod crowd;
#[path = "view/hostile.rs"]
mod hostile;
#[path = "view/inserts.rs"]
mod inserts;
#[path = "view/place.rs"]
mod place;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use place::{Engine, Place};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let has_clients = std::env::var_os("LEASEHOLD_REQUIRE_CLIENTS").is_some();
    let mut trials = Vec::new();
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let absent = engine == Engine::Postgres && place::server().is_none() && !required;
        let name = format!("{}::hostile_inserts_break_nothing", engine.name());
        let all = trial(name, engine, |place| {
            Runtime::block_on(&runtime(), hostile_inserts_break_nothing(place))
        });
        trials.push(all.with_ignored_flag(absent));
        for client in clients::of(engine) {
            let name = format!("{}::inserts_of_{}_are_jobs_or_errors", engine.name(), client.name);
            let one = trial(name, engine, move |place| {
                Runtime::block_on(
                    &runtime(),
                    inserts_of_programs_are_jobs_or_errors(place, &client),
                );
            });
            trials.push(one.with_ignored_flag(absent || !has_clients));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

fn trial(name: String, engine: Engine, story: impl FnOnce(&Place) + Send + 'static) -> Trial {
    let story_name = name.clone();
    Trial::test(name, move || {
        let place = Place::new(engine, &story_name).ok_or("no server: see scripts/test")?;
        story(&place);
        Ok::<(), Failed>(())
    })
}

/// Proves: TX-8, IDM-1, WQ-2
async fn hostile_inserts_break_nothing(place: &Place) {
    let crowd = crowd::fill(place).await;
    let before = place.dump().await;
    crowd::is_sound(&before);
    let taken = hostile::insert(place).await;
    let after = place.dump().await;
    crowd::is_sound(&after);
    crowd::has_only_added(&before, &after);
    let added = after.cells("jobs").len() - before.cells("jobs").len();
    assert!(added > 100 && added <= taken, "{taken} inserts went in and made {added} jobs");
    crowd.goes_on(place, &after).await;
}

/// Proves: TX-8, IDM-1, WQ-2
async fn inserts_of_programs_are_jobs_or_errors(place: &Place, client: &clients::Client) {
    let crowd = crowd::fill(place).await;
    place.let_in().await;
    let begun = place.dump().await;
    let mut before = begun.clone();
    let mut wrong = Vec::new();
    for insert in inserts::of(place.engine, client.takes_parameters) {
        let told = client.run(place, &insert);
        let after = place.dump().await;
        let made = after.cells("jobs").len() - before.cells("jobs").len();
        if let Err(why) = insert.judge(&told, made) {
            wrong.push(format!("{}: {why}\n  {}", insert.what, insert.sql));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{}:\n{}", client.name, wrong.join("\n"));
    crowd::is_sound(&before);
    crowd::has_only_added(&begun, &before);
    crowd.goes_on(place, &before).await;
}
