//! Owns what operators do with dead letters besides letting a replay run: notes, closing, escalating,
//! listing, and what is refused.

use leasehold_core::{
    AuditFilter, Control, Controlled, ErrorKind, Found, JobId, JobKind, LetterAct, LetterFilter,
    LetterState, Lifecycle, NewJob, OnFailure, Paging, PruneRequest, Query, Result, State,
    StoreExt, Verdict,
};

use super::group;
use super::replays::asked;
use crate::lab::{Lab, actor, assert_refused, job, job_of, lasting, passing, queue, seconds};

group!("letters": only_the_dead_are_replayed, replay_is_logged_and_audited,
    no_secret_enters_a_note, letters_are_annotated, letters_are_closed_by_hand,
    letters_are_escalated_by_hand, note_is_needed, act_on_a_letter_under_way,
    letters_are_filtered, letter_that_is_not_there_is_not_found, pruned_job_takes_its_letters_along, cancelled_children_stay_cancelled);

async fn note(lab: &Lab, act: LetterAct, job: JobId, note: &str) -> Result<Controlled> {
    lab.control(Control::NoteLetter { act, job, actor: actor(), note: note.to_owned() }).await
}

/// Jobs that are not dead letters, or not there, are not replayed, and nothing is written.
///
/// Proves: DL-3, WQ-2
async fn only_the_dead_are_replayed(lab: &Lab) -> Result<()> {
    let waiting = lab.add(job(1).queue(queue("later"))).await?;
    let leased = lab.claimed().await?.job.id;
    let done = lab.claimed().await?;
    lab.succeed(done.fence).await?;
    let failed = lab.claimed().await?;
    lab.end(failed.fence, Verdict::Fail { failure: passing() }).await?;
    let before = lab.dump().await?;
    for id in [waiting, leased, done.job.id, failed.job.id] {
        assert_refused(lab.ask(asked(id)).await, ErrorKind::IllegalTransition);
    }
    assert_refused(lab.ask(asked(JobId::new())).await, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

/// A replay stands in the job's log with its actor, and in the audit with its note.
///
/// Proves: DL-3, GLO-1
async fn replay_is_logged_and_audited(lab: &Lab) -> Result<()> {
    let id = lab.dead(job_of(&Lifecycle::review())).await?;
    lab.replay(asked(id)).await?;
    let log = lab.find(Query::Transitions(id, Paging::first(9))).await?.items;
    let Some(Found::Transition(last)) = log.last() else { panic!("no transition") };
    assert_eq!((last.verb.as_str(), last.from.as_str()), ("replay", "dead_letter"));
    assert_eq!(last.actor, Some(actor()));
    let said = lab.audit(AuditFilter::new().action("replay"), Paging::first(9)).await?.items;
    assert_eq!(said.len(), 1);
    assert_eq!((&said[0].actor, &said[0].target), (&actor(), &format!("job {id}")));
    assert_eq!(said[0].detail.as_deref(), Some("the schema was mended"));
    Ok(())
}

/// A request for a letter that the job does not have is told so, and none other is taken for it.
///
/// Proves: DL-3, ERR-1
async fn letter_that_is_not_there_is_not_found(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    let fence = lab.bury(lasting()).await?;
    let before = lab.dump().await?;
    let error = lab.ask(asked(id).letter(fence.version().next().next())).await;
    let error = error.expect_err("there is no such letter");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("no such dead letter"), "{error}");
    lab.assert_unchanged(&before).await
}

/// A secret in an operator's note is cut out before it is stored, in the letter and in the audit.
///
/// Proves: DL-2
async fn no_secret_enters_a_note(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let secret = format!("gh{}_{}", "p", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    lab.replay(asked(id).note(format!("set password={secret} anew"))).await?;
    let dump = lab.dump().await?;
    for table in ["dead_letters", "audit"] {
        assert_eq!(dump.rows(table).len(), 1);
        assert!(!format!("{:?}", dump.rows(table)).contains(&secret), "in {table}");
    }
    Ok(())
}

/// A note changes nothing else of a letter.
///
/// Proves: DL-3
async fn letters_are_annotated(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    assert_eq!(note(lab, LetterAct::Annotate, id, "asked the vendor").await?, Controlled::Done);
    let letter = lab.letter(id).await?;
    assert_eq!((letter.state, letter.replay_job), (LetterState::Open, None));
    assert_eq!(
        (letter.note.as_deref(), letter.changed_by),
        (Some("asked the vendor"), Some(actor()))
    );
    let said = lab.audit(AuditFilter::new().action("annotate"), Paging::first(9)).await?;
    assert_eq!(said.items.len(), 1);
    Ok(())
}

/// A letter that is closed by hand is closed once, and no replay opens it.
///
/// Proves: DL-3
async fn letters_are_closed_by_hand(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    note(lab, LetterAct::Resolve, id, "done by hand").await?;
    assert_eq!(lab.letter(id).await?.state, LetterState::Resolved);
    assert_eq!(lab.row(id).await?.state, State::DeadLetter);
    let before = lab.dump().await?;
    let again = note(lab, LetterAct::Resolve, id, "done by hand").await?;
    assert_eq!(again, Controlled::Unchanged);
    assert_refused(lab.ask(asked(id)).await, ErrorKind::IllegalTransition);
    lab.assert_unchanged(&before).await
}

/// An escalated letter is replayed like an open one, and one closed by mistake is opened by escalating it.
///
/// Proves: DL-3, DL-4
async fn letters_are_escalated_by_hand(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    note(lab, LetterAct::Resolve, id, "by mistake").await?;
    assert_eq!(note(lab, LetterAct::Escalate, id, "not done").await?, Controlled::Done);
    assert_eq!(note(lab, LetterAct::Escalate, id, "not done").await?, Controlled::Unchanged);
    assert_eq!(lab.letter(id).await?.state, LetterState::Escalated);
    lab.replay(asked(id)).await?;
    Ok(())
}

/// No act on a letter goes without a note, nor on a job that has none.
///
/// Proves: DL-3
async fn note_is_needed(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    let live = lab.add(job(2)).await?;
    let before = lab.dump().await?;
    for act in [LetterAct::Annotate, LetterAct::Resolve, LetterAct::Escalate] {
        assert_refused(note(lab, act, id, " ").await, ErrorKind::Invalid);
        assert_refused(note(lab, act, live, "why").await, ErrorKind::IllegalTransition);
        assert_refused(note(lab, act, JobId::new(), "why").await, ErrorKind::NotFound);
    }
    lab.assert_unchanged(&before).await
}

/// While a replay runs its letter takes notes and may be closed by hand, which the replay's end respects.
///
/// Proves: DL-3
async fn act_on_a_letter_under_way(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    assert_refused(
        note(lab, LetterAct::Escalate, id, "too slow").await,
        ErrorKind::IllegalTransition,
    );
    note(lab, LetterAct::Resolve, id, "no longer wanted").await?;
    lab.bury(lasting()).await?;
    let states: Vec<_> = lab.letters().await?.iter().map(|it| it.state).collect();
    assert_eq!(states, [LetterState::Resolved, LetterState::Open]);
    Ok(())
}

/// Letters are listed by job, queue, kind, class and state, alone and together, page by page.
///
/// Proves: DL-3, QUE-6
async fn letters_are_filtered(lab: &Lab) -> Result<()> {
    let kind = JobKind::new("other")?;
    let first = lab.dead(job(1)).await?;
    let second = lab.dead(NewJob::new(kind.clone(), leasehold_core::Json::null())).await?;
    let third = lab.add(job(3)).await?;
    lab.bury(leasehold_core::Failure::new(leasehold_core::FailureCode::AuthDenied, "no")).await?;
    note(lab, LetterAct::Resolve, first, "by hand").await?;
    let any = LetterFilter::new;
    let class = lab.letter(third).await?.error_class;
    for (filter, expected) in [
        (any(), vec![first, second, third]),
        (any().state(LetterState::Open), vec![second, third]),
        (any().state(LetterState::Resolved), vec![first]),
        (any().kind(kind), vec![second]),
        (any().job(second), vec![second]),
        (any().error_class(class), vec![third]),
        (any().queue(queue("default")).state(LetterState::Open), vec![second, third]),
        (any().queue(queue("none")), vec![]),
        (any().job(first).state(LetterState::Open), vec![]),
    ] {
        let mut found = Vec::new();
        let mut paging = Paging::first(1);
        loop {
            let page = lab.find(Query::Letters(filter.clone(), paging)).await?;
            for item in page.items {
                let Found::DeadLetter(letter) = item else { panic!("not a letter") };
                found.push(letter.job);
            }
            let Some(next) = page.next else { break };
            paging = Paging::first(1).after(next);
        }
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(found, expected, "{filter:?}");
    }
    Ok(())
}

/// Prune takes a dead job with its payload and its letters; a replay after that is told so.
///
/// Proves: DL-3, QUE-4
async fn pruned_job_takes_its_letters_along(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.advance(10);
    lab.prune(PruneRequest::new().older_than(seconds(5))).await?;
    assert_eq!(lab.letters().await?, []);
    let error = lab.ask(asked(id)).await.expect_err("nothing is left");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("pruned"), "{error}");
    Ok(())
}

/// What a job's death has cancelled stays cancelled when it runs again.
///
/// Proves: DL-3, FAN-3
async fn cancelled_children_stay_cancelled(lab: &Lab) -> Result<()> {
    let parent = lab.add(job(1)).await?;
    let child = lab.add(job(2).after(parent, OnFailure::Cancel)).await?;
    lab.bury(lasting()).await?;
    lab.replay(asked(parent)).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    assert_eq!(lab.row(child).await?.state, State::Cancelled);
    Ok(())
}
