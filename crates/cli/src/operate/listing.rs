//! Owns the lists that the configuration names, as it was when each was a list of its own: what a name stands for.

use std::sync::Arc;

use leasehold::{Error, ErrorKind, JobFilter, LetterFilter, Result, State, Store};

use super::answer::Answer;
use super::letters::{self, Shown};
use super::{PageOf, jobs};
use crate::config::Config;

/// The keys that name a list.
const COMPLETED: &str = "worker.completed_list";
const DEAD: &str = "worker.dead_letter_list";

/// Lists what the name stands for.
///
/// # Errors
/// `NotFound` for a name that stands for nothing, with those that do; the store's.
pub(super) async fn show(
    store: &Arc<dyn Store>,
    config: &Config,
    name: &str,
    page: &PageOf,
) -> Result<Answer> {
    if name == config.text(COMPLETED) {
        let mut filter = JobFilter::new();
        filter.state = Some(State::Succeeded);
        return jobs::list(store, filter, page.paging()).await;
    }
    if name == config.text(DEAD) {
        return letters::list(store, LetterFilter::new(), &Shown::ALL, page.paging()).await;
    }
    let known = [COMPLETED, DEAD].map(|key| format!("{} ({key})", config.text(key)));
    let why = format!("no list has this name; there are {}", known.join(" and "));
    Err(Error::new(ErrorKind::NotFound, "list", why).about(name.to_owned()))
}
