//! Owns the rules of one dead letter, and of its job's others.

use std::sync::Arc;

use leasehold::{
    DeadLetterView, Found, LetterFilter, LetterState, Paging, Query, Result, State, Store, StoreExt,
};

use super::unless;

/// Reads a letter anew with those of its job and the replay that it names, and tells what cannot be.
pub(super) async fn wrong(
    store: &Arc<dyn Store>,
    letter: &DeadLetterView,
    quick: bool,
) -> Result<Vec<String>> {
    let filter = LetterFilter::new().job(letter.job);
    let found = store.find(Query::Letters(filter, Paging::first(1_000))).await?;
    let all = found.items.into_iter().filter_map(|found| match found {
        Found::DeadLetter(letter) => Some(*letter),
        _ => None,
    });
    let all: Vec<DeadLetterView> = all.collect();
    let Some(now) = all.iter().find(|it| it.claim_version == letter.claim_version) else {
        return Ok(Vec::new());
    };
    let mut wrong = alone(now);
    let attended = all.iter().filter(|letter| letter.state.wants_attention()).count();
    wrong.extend(unless([(attended <= 1, "one of several of its job that wait for an operator")]));
    if !quick {
        wrong.extend(beside(store, now).await?);
    }
    if let (false, LetterState::Replaying, Some(replay)) = (quick, now.state, now.replay_job) {
        let by = store.job(replay).await?.map(|job| job.state);
        let is_over = matches!(by, Some(State::DeadLetter | State::Cancelled));
        wrong.extend(unless([(!is_over, "under way, but its replay has ended badly")]));
    }
    Ok(wrong)
}

/// What its job says: it is there, and has ended where an operator is still to decide.
async fn beside(store: &Arc<dyn Store>, letter: &DeadLetterView) -> Result<Vec<String>> {
    let job = store.job(letter.job).await?;
    let is_over = job.as_ref().is_none_or(|job| job.state.is_terminal());
    let waits = letter.state.wants_attention();
    Ok(unless([
        (job.is_some(), "of a job that is not there"),
        (!waits || is_over, "waits for an operator, but its job goes on"),
    ]))
}

/// What the row itself says.
pub(super) fn alone(letter: &DeadLetterView) -> Vec<String> {
    let is_replayed = letter.replay_job.is_some();
    let told = letter.changed_by.is_some() && letter.note.is_some();
    let needs = matches!(letter.state, LetterState::Replaying | LetterState::Superseded);
    unless([
        (!needs || is_replayed, "replayed by no job"),
        (!is_replayed || told, "replayed, and nobody says why"),
        (letter.attempts >= 1 || letter.claim_version.get() == 0, "given up before it was tried"),
        (letter.first_failure_at <= letter.last_failure_at, "failed last before it failed first"),
    ])
}
