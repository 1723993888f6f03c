//! Owns the list of groups. A scenario that its group forgets to list is dead code, and an error.

mod claim;
mod enqueue;
mod joined;
mod lifecycles;
mod outbox;
mod settle;
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
    claim::SCENARIOS,
    settle::SCENARIOS,
    outbox::SCENARIOS,
    joined::SCENARIOS,
    upkeep::SCENARIOS,
    lifecycles::SCENARIOS,
];
