//! Owns how acts on dead letters are made of chance: replays, repeats of them, and notes.

use leasehold_core::{
    Actor, ClaimVersion, Control, JobId, LetterAct, LetterFilter, LetterState, Paging, Query,
    Replay,
};

use super::draw::Draw;
use super::table::Table;

/// A replay or another act on a dead letter; some of them of jobs that have none.
pub(super) fn act(draw: &mut Draw, table: &Table) -> Control {
    let actor = Actor::new("operator").expect("an actor");
    let job = draw.late(&table.dead).copied().unwrap_or_else(|| JobId::from_uuid(draw.id()));
    if draw.once_in(4) {
        let act = [LetterAct::Annotate, LetterAct::Resolve, LetterAct::Escalate][draw.below(3)];
        let note = if draw.once_in(6) { "" } else { "seen" };
        return Control::NoteLetter { act, job, actor, note: note.to_owned() };
    }
    let new_job = match draw.once_in(8) {
        true => draw.late(&table.job_ids()).copied(),
        false => None,
    };
    let new_job = new_job.unwrap_or_else(|| JobId::from_uuid(draw.id()));
    let mut replay = Replay::new(job, actor).new_job(new_job).note("mended");
    if !draw.once_in(9) {
        replay = replay.safe_to_repeat();
    }
    if draw.once_in(3) {
        replay = replay.from_start();
    }
    if draw.once_in(5) {
        replay = replay.letter(ClaimVersion::new(1 + draw.below(3) as i64).expect("a version"));
    }
    Control::Replay(Box::new(replay))
}

/// A listing of one state.
pub(super) fn find(draw: &mut Draw, paging: Paging) -> Query {
    let state = LetterState::ALL[draw.below(5)];
    Query::Letters(LetterFilter::new().state(state), paging)
}
