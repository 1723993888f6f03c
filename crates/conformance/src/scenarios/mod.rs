//! Owns the list of groups. A scenario that its group forgets to list is dead code, and an error.

mod admissions;
mod audit;
mod blobs;
mod cancel;
mod claim;
mod content;
mod control;
pub(crate) mod crossed;
mod crossed_events;
mod delivery;
mod documents;
mod edges;
mod enqueue;
mod fan_in;
mod fan_in_ends;
mod fan_in_repeats;
mod joined;
mod keys;
mod landing;
mod letters;
mod lifecycles;
mod limits;
mod listing;
mod operators;
mod order;
mod outbox;
mod partition_limits;
mod partitions;
mod progress;
mod prune;
mod reclaim;
mod records;
mod replays;
mod replays_anew;
mod replays_many;
mod replays_sent;
mod reruns;
mod rest;
mod savepoints;
mod settle;
mod stale;
mod tokens;
mod trail;
mod turns;
mod upkeep;

use crate::Scenario;

/// Lists a group's scenarios under its name.
macro_rules! group {
    ($group:literal: $($run:ident),+ $(,)?) => {
        pub(crate) const SCENARIOS: &[crate::Scenario] = &[$(crate::Scenario {
            name: concat!($group, "::", stringify!($run)),
            run: |lab| Box::pin($run(lab)),
        }),+];
    };
}
pub(crate) use group;

/// Every group.
pub(crate) const GROUPS: &[&[Scenario]] = &[
    enqueue::SCENARIOS,
    keys::SCENARIOS,
    content::SCENARIOS,
    reruns::SCENARIOS,
    claim::SCENARIOS,
    turns::SCENARIOS,
    limits::SCENARIOS,
    partitions::SCENARIOS,
    partition_limits::SCENARIOS,
    edges::SCENARIOS,
    progress::SCENARIOS,
    cancel::SCENARIOS,
    control::SCENARIOS,
    settle::SCENARIOS,
    landing::SCENARIOS,
    rest::SCENARIOS,
    stale::SCENARIOS,
    crossed::SCENARIOS,
    crossed_events::SCENARIOS,
    reclaim::SCENARIOS,
    outbox::SCENARIOS,
    order::SCENARIOS,
    delivery::SCENARIOS,
    fan_in::SCENARIOS,
    fan_in_ends::SCENARIOS,
    fan_in_repeats::SCENARIOS,
    joined::SCENARIOS,
    savepoints::SCENARIOS,
    records::SCENARIOS,
    admissions::SCENARIOS,
    documents::SCENARIOS,
    blobs::SCENARIOS,
    audit::SCENARIOS,
    tokens::SCENARIOS,
    prune::SCENARIOS,
    upkeep::SCENARIOS,
    listing::SCENARIOS,
    trail::SCENARIOS,
    lifecycles::SCENARIOS,
    operators::SCENARIOS,
    replays::SCENARIOS,
    replays_anew::SCENARIOS,
    replays_many::SCENARIOS,
    replays_sent::SCENARIOS,
    letters::SCENARIOS,
];
