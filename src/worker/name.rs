//! Owns a worker's name for people.

use leasehold_core::WorkerId;

pub(super) fn name_from_env(id: WorkerId) -> String {
    let read = |name: &str| std::env::var(name).ok();
    name_of(id, read("POD_NAME"), read("HOSTNAME"))
}

/// The pod's name, else the host's, else the id; an empty name counts as unset.
pub(super) fn name_of(id: WorkerId, pod: Option<String>, host: Option<String>) -> String {
    let set = |name: &String| !name.is_empty();
    pod.filter(set).or_else(|| host.filter(set)).unwrap_or_else(|| id.to_string())
}
