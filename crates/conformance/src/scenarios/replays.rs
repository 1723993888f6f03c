//! Owns replays of dead letters in place: what the job keeps, where it begins, and how the letter closes
//! or comes back.

use leasehold_core::{
    Controlled, DeadLetterView, ErrorKind, Failure, FailureCode, Fence, JobId, LetterState,
    Lifecycle, LostReason, NewJob, Progress, QueueName, Replay, Result, StageName, State, StoreExt,
    Verdict,
};

use super::group;
use crate::lab::{
    Lab, actor, assert_lost, assert_refused, job, job_in, job_of, json, key, lasting, passing,
    retry,
};

group!("replays": dead_letter_runs_again_in_place, replay_needs_a_note_and_the_word,
    failed_stage_keeps_its_checkpoint, start_forgets_the_checkpoint, budget_begins_anew,
    stage_budget_begins_anew, versions_rise_through_replays, success_closes_the_letter,
    same_final_class_comes_back_escalated, another_class_comes_back_open,
    spent_budget_comes_back_open, lapsed_lease_brings_the_letter_back,
    cancelled_replay_opens_the_letter, failed_replay_waits_for_a_retry, two_replays_give_one,
    late_repeat_starts_nothing, key_still_answers_with_the_job, place_in_the_queue_is_kept,
    old_claim_stays_lost);

/// A request that has all it needs.
pub(super) fn asked(id: JobId) -> Replay {
    Replay::new(id, actor()).note("the schema was mended").safe_to_repeat()
}

impl Lab {
    /// Asks for a replay that is to begin now; the job that runs.
    pub(super) async fn replay(&self, replay: Replay) -> Result<JobId> {
        match self.control(leasehold_core::Control::Replay(Box::new(replay))).await? {
            Controlled::Replayed { job, repeated: false } => Ok(job),
            other => panic!("not a replay: {other:?}"),
        }
    }

    /// Asks for a replay that may not begin.
    pub(super) async fn ask(&self, replay: Replay) -> Result<Controlled> {
        self.control(leasehold_core::Control::Replay(Box::new(replay))).await
    }

    /// Claims the one job that is due and gives it up.
    pub(super) async fn bury(&self, failure: Failure) -> Result<Fence> {
        let claim = self.take_one().await?;
        self.end(claim.fence, Verdict::DeadLetter { failure }).await?;
        Ok(claim.fence)
    }

    /// A dead-lettered job.
    pub(super) async fn dead(&self, new: NewJob) -> Result<JobId> {
        let id = self.add(new).await?;
        self.bury(lasting()).await?;
        Ok(id)
    }

    /// The newest letter of a job.
    pub(super) async fn letter(&self, id: JobId) -> Result<DeadLetterView> {
        let own = self.letters().await?.into_iter().filter(|letter| letter.job == id);
        Ok(own.last().expect("a dead letter"))
    }
}

/// A dead letter of `standard` waits again: same job, payload and version, a fresh budget; the letter
/// names who asked, and why.
///
/// Proves: DL-3, DL-5, WQ-8
async fn dead_letter_runs_again_in_place(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(7)).await?;
    let before = lab.row(id).await?;
    lab.advance(5);
    assert_eq!(lab.replay(asked(id)).await?, id);
    let row = lab.row(id).await?;
    assert_eq!((row.state, row.attempts, row.payload.clone()), (State::Waiting, 0, json(7)));
    assert_eq!((row.claim_version, row.replay_of), (before.claim_version, None));
    let letter = lab.letter(id).await?;
    assert_eq!((letter.state, letter.replay_job), (LetterState::Replaying, Some(id)));
    assert_eq!((letter.changed_by, letter.changed_at), (Some(actor()), Some(row.updated_at)));
    assert_eq!(letter.note.as_deref(), Some("the schema was mended"));
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.id, claim.job.attempt, claim.job.executions), (id, 1, 2));
    assert!(claim.fence.version() > before.claim_version);
    Ok(())
}

/// Without a note, or without the word that repeating is safe, nothing begins.
///
/// Proves: DL-3
async fn replay_needs_a_note_and_the_word(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let before = lab.dump().await?;
    let bare = || Replay::new(id, actor());
    let long = "x".repeat(1_025);
    for refused in [
        bare(),
        bare().safe_to_repeat(),
        bare().note("  ").safe_to_repeat(),
        bare().note("mended"),
        bare().note(long).safe_to_repeat(),
    ] {
        assert_refused(lab.ask(refused).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await
}

/// A review whose second stage has a checkpoint, dead at that stage.
async fn dead_review(lab: &Lab) -> Result<JobId> {
    let id = lab.add(job_of(&Lifecycle::review())).await?;
    let claim = lab.take_one().await?;
    let report = Progress::new(claim.fence, 1).advance(StageName::new("llm")?);
    lab.progress_one(report.checkpoint(json(41))).await?;
    lab.end(claim.fence, Verdict::DeadLetter { failure: lasting() }).await?;
    Ok(id)
}

/// A replay goes on at the stage that failed, with what earlier stages left.
///
/// Proves: DL-3, RT-7
async fn failed_stage_keeps_its_checkpoint(lab: &Lab) -> Result<()> {
    let id = dead_review(lab).await?;
    lab.replay(asked(id)).await?;
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.stage.as_str(), claim.job.attempt), ("llm", 1));
    assert_eq!(claim.job.checkpoint, Some(json(41)));
    Ok(())
}

/// A replay from the start begins at the first stage and knows nothing of the run before.
///
/// Proves: DL-3
async fn start_forgets_the_checkpoint(lab: &Lab) -> Result<()> {
    let id = dead_review(lab).await?;
    lab.replay(asked(id).from_start()).await?;
    assert_eq!(lab.row(id).await?.checkpoint, None);
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.stage.as_str(), claim.job.checkpoint), ("fetch", None));
    Ok(())
}

/// After a replay the job has all its attempts again.
///
/// Proves: DL-3, WQ-14
async fn budget_begins_anew(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1).max_attempts(2)).await?;
    lab.replay(asked(id)).await?;
    for state in [State::Waiting, State::DeadLetter] {
        let claim = lab.take_one().await?;
        assert_eq!(claim.job.max_attempts, 2);
        lab.end(claim.fence, retry(0)).await?;
        assert_eq!(lab.row(id).await?.state, state);
    }
    Ok(())
}

/// Where budgets are per stage the failed stage has all its attempts again, and the next its own.
///
/// Proves: DL-3, RT-4
async fn stage_budget_begins_anew(lab: &Lab) -> Result<()> {
    let id = dead_review(lab).await?;
    lab.replay(asked(id)).await?;
    for _ in 0..4 {
        let claim = lab.take_one().await?;
        lab.end(claim.fence, retry(0)).await?;
    }
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.stage.as_str(), claim.job.attempt), ("llm", 5));
    lab.progress_one(Progress::new(claim.fence, 1).advance(StageName::new("notify")?)).await?;
    lab.end(claim.fence, retry(0)).await?;
    assert_eq!(lab.row(id).await?.state, State::Waiting);
    Ok(())
}

/// Through replay after replay no claim version comes twice, and every death has a letter of its own.
///
/// Proves: WQ-8, DL-1, DL-3
async fn versions_rise_through_replays(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let mut versions = vec![lab.row(id).await?.claim_version];
    for _ in 0..3 {
        lab.replay(asked(id)).await?;
        versions.push(lab.bury(lasting()).await?.version());
    }
    assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "{versions:?}");
    let letters: Vec<_> = lab.letters().await?.iter().map(|it| it.claim_version).collect();
    assert_eq!(letters, versions);
    Ok(())
}

/// The settlement of a replay that ends well closes the letter, which still names who asked for it.
///
/// Proves: DL-3
async fn success_closes_the_letter(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    lab.advance(9);
    let claim = lab.take_one().await?;
    assert_eq!(lab.letter(id).await?.state, LetterState::Replaying);
    lab.succeed(claim.fence).await?;
    let (letter, row) = (lab.letter(id).await?, lab.row(id).await?);
    assert_eq!((letter.state, letter.changed_at), (LetterState::Resolved, row.finished_at));
    assert_eq!(letter.changed_by, Some(actor()));
    let before = lab.dump().await?;
    assert!(lab.succeed(claim.fence).await?.repeated);
    lab.assert_unchanged(&before).await
}

pub(super) async fn states(lab: &Lab) -> Result<Vec<LetterState>> {
    Ok(lab.letters().await?.iter().map(|letter| letter.state).collect())
}

/// A replay that fails in the same final way comes back escalated, in the older letter's place.
///
/// Proves: DL-4
async fn same_final_class_comes_back_escalated(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    for earlier in 1..3 {
        lab.replay(asked(id)).await?;
        lab.bury(lasting()).await?;
        let mut expected = vec![LetterState::Superseded; earlier];
        expected.push(LetterState::Escalated);
        assert_eq!(states(lab).await?, expected);
    }
    Ok(())
}

/// A replay that fails in another final way is a new case.
///
/// Proves: DL-4
async fn another_class_comes_back_open(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    lab.bury(Failure::new(FailureCode::AuthDenied, "no entry")).await?;
    assert_eq!(states(lab).await?, [LetterState::Superseded, LetterState::Open]);
    Ok(())
}

/// A class that may be retried never escalates, however often its budget runs out.
///
/// Proves: DL-4
async fn spent_budget_comes_back_open(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).max_attempts(1)).await?;
    for _ in 0..2 {
        let claim = lab.take_one().await?;
        lab.end(claim.fence, retry(0)).await?;
        if lab.letters().await?.len() == 1 {
            lab.replay(asked(id)).await?;
        }
    }
    assert_eq!(states(lab).await?, [LetterState::Superseded, LetterState::Open]);
    Ok(())
}

/// A replay whose holder is lost counts like any other: with its budget gone the letter comes back, by
/// the sweeper and in passing by a claim.
///
/// Proves: DL-4, WQ-7
async fn lapsed_lease_brings_the_letter_back(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1).max_attempts(1)).await?;
    lab.replay(asked(id)).await?;
    let _held = lab.take_one().await?;
    lab.advance(30);
    lab.reclaim(leasehold_core::ReclaimRequest::jobs()).await?;
    assert_eq!(states(lab).await?, [LetterState::Superseded, LetterState::Open]);
    lab.replay(asked(id)).await?;
    let _held = lab.take_one().await?;
    lab.advance(30);
    assert_eq!(lab.take(1).await?.len(), 0);
    let (old, new) = (LetterState::Superseded, LetterState::Open);
    assert_eq!(states(lab).await?, [old, old, new]);
    Ok(())
}

/// A replay that is called off leaves its letter open.
///
/// Proves: DL-3, QUE-2
async fn cancelled_replay_opens_the_letter(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    lab.cancel(id).await?;
    assert_eq!(states(lab).await?, [LetterState::Open]);
    assert_refused(lab.ask(asked(id)).await, ErrorKind::IllegalTransition);
    Ok(())
}

/// A replay that fails while a retry may take it back keeps its letter until that is decided.
///
/// Proves: DL-3
async fn failed_replay_waits_for_a_retry(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Fail { failure: passing() }).await?;
    assert_eq!(states(lab).await?, [LetterState::Replaying]);
    lab.reopen(id).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    assert_eq!(states(lab).await?, [LetterState::Resolved]);
    Ok(())
}

/// Of two replays the second learns of the first and writes nothing.
///
/// Proves: DL-3, GLO-2
async fn two_replays_give_one(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let request = asked(id);
    lab.replay(request.clone()).await?;
    let before = lab.dump().await?;
    for again in [request, asked(id).from_start()] {
        let expected = Controlled::Replayed { job: id, repeated: true };
        assert_eq!(lab.ask(again).await?, expected);
    }
    lab.assert_unchanged(&before).await
}

/// A request that names its letter, sent again after the replay has failed, starts nothing.
///
/// Proves: DL-3, GLO-2
async fn late_repeat_starts_nothing(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let request = asked(id).letter(lab.letter(id).await?.claim_version);
    lab.replay(request.clone()).await?;
    lab.bury(lasting()).await?;
    let before = lab.dump().await?;
    let expected = Controlled::Replayed { job: id, repeated: true };
    assert_eq!(lab.ask(request).await?, expected);
    lab.assert_unchanged(&before).await?;
    lab.replay(asked(id)).await?;
    Ok(())
}

/// The key answers with the same job before, during and after a replay in place.
///
/// Proves: DL-5, IDM-1
async fn key_still_answers_with_the_job(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1).key(key("order 7"))).await?;
    lab.replay(asked(id)).await?;
    let again = lab.enqueue_one(job(1).key(key("order 7"))).await?;
    assert_eq!((again.job(), again.is_new(), again.state()), (id, false, Some(State::Waiting)));
    Ok(())
}

/// A replay keeps queue, partition and priority, and a paused queue holds it back like any other.
///
/// Proves: DL-3, QUE-1
async fn place_in_the_queue_is_kept(lab: &Lab) -> Result<()> {
    let id = lab.dead(job_in("tenant 7", 1).priority(5)).await?;
    let before = lab.row(id).await?;
    let queue = QueueName::default_queue();
    lab.control(leasehold_core::Control::Pause(queue.clone())).await?;
    lab.replay(asked(id)).await?;
    assert_eq!(lab.take(1).await?.len(), 0);
    lab.control(leasehold_core::Control::Resume(queue)).await?;
    let row = lab.row(id).await?;
    assert_eq!((row.queue, row.partition), (before.queue, before.partition));
    assert_eq!((row.priority, row.blocked), (5, false));
    assert_eq!(lab.take_one().await?.job.id, id);
    Ok(())
}

/// The claim that gave the job up is not revived with it.
///
/// Proves: DL-3, GLO-3
async fn old_claim_stays_lost(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    let old = lab.bury(lasting()).await?;
    lab.replay(asked(id)).await?;
    assert_lost(lab.succeed(old).await, LostReason::Settled);
    let claim = lab.take_one().await?;
    assert_lost(lab.succeed(old).await, LostReason::TakenOver);
    lab.succeed(claim.fence).await?;
    Ok(())
}
