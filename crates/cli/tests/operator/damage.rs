//! What becomes of rows that somebody has altered behind the store's back: nothing else waits for them, and
//! the look for broken rules lists each.

use leasehold::{
    ClaimRequest, Control, EventClaim, EventClaimRequest, EventId, Failure, FailureCode, Json,
    NewEvent, OrderKey, Ordering, QueueName, ReclaimRequest, Settlement, StoreExt, Topic, Verdict,
    WorkerId,
};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::desk::{Desk, at, job, rows, same};

/// Two rows that cannot be read, the oldest among them: the others are claimed, both are told of by name,
/// and run once they are mended and woken.
///
/// Proves: GLO-1, WQ-3
pub(crate) fn damaged_rows_hold_up_nothing_else(desk: &Desk) -> Result<(), Failed> {
    let new = || desk.enqueue(job("q")?);
    let ids = [new()?, new()?, new()?, new()?];
    desk.sql(include_str!("damage.sql"))?;
    let queue = QueueName::new("q")?;
    let claim = || ClaimRequest::new(WorkerId::new(), [queue.clone()]).limit(10);
    let held = desk.wait(desk.store.claim(claim()))?;
    let held_ids: Vec<_> = held.iter().map(|claim| claim.job.id).collect();
    same("claimed", &Value::from(held_ids == ids[1..3]), true)?;
    let out = desk.run(&["verify", "--json"])?;
    same("exit code", &Value::from(out.status.code()), 5)?;
    let said: Value = serde_json::from_slice(&out.stdout)?;
    same("jobs", at(&said, "/looked_at/jobs"), 4)?;
    for (number, id) in [(0, ids[0]), (1, ids[3])] {
        let row = at(&said, &format!("/breaches/rows/{number}"));
        same("id", at(row, "/id"), id.to_string())?;
        let why = at(row, "/broken").as_str().unwrap_or_default();
        same(why, &Value::from(why.starts_with("cannot be read: ")), true)?;
    }
    let audit = desk.json(&["audit", "--action", "job.set_aside"])?;
    same("audited", &Value::from(rows(&audit, "")?.len()), 2)?;
    let listed = desk.json(&["jobs", "list"])?;
    same("listed", at(&listed, "/rows/0/job"), ids[0].to_string())?;
    let out = desk.run(&["jobs", "show", &ids[0].to_string()])?;
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    same(&why, &Value::from(why.contains(&ids[0].to_string())), true)?;
    for claim in held {
        desk.wait(desk.store.succeed(claim.fence))?;
    }
    desk.sql(include_str!("mend.sql"))?;
    same("at rest", &Value::from(desk.wait(desk.store.claim(claim()))?.len()), 0)?;
    for id in [ids[0], ids[3]] {
        desk.json(&["jobs", "wake", &id.to_string()])?;
    }
    same("woken", &Value::from(desk.wait(desk.store.claim(claim()))?.len()), 2)
}

/// A lease lapses whose row cannot be read any more: the lapsed ones beside it are taken back. What a job was
/// asked for is read by nobody but its next claim, so that it is taken back too.
///
/// Proves: GLO-1, RP-1
pub(crate) fn a_damaged_lease_is_taken_back(desk: &Desk) -> Result<(), Failed> {
    for _ in 0..3 {
        desk.enqueue(job("q")?)?;
    }
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("q")?]).limit(3);
    same("leased", &Value::from(desk.wait(desk.store.claim(request))?.len()), 3)?;
    desk.sql(include_str!("lapse.sql"))?;
    desk.sql(include_str!("damage.sql"))?;
    let back = desk.wait(desk.store.reclaim(ReclaimRequest::jobs()))?.jobs.len();
    same("taken back", &Value::from(back), 2)?;
    let audit = desk.json(&["audit", "--action", "job.set_aside"])?;
    same("audited", &Value::from(rows(&audit, "")?.len()), 1)
}

/// Events that cannot be read, the oldest of a key among them: those behind it and all others go on, both are
/// told of by name, and one goes too once it is mended and replayed. One that is found when its lease lapses
/// is ended likewise.
///
/// Proves: GLO-1, TX-6, TX-9
pub(crate) fn a_damaged_event_holds_up_no_other(desk: &Desk) -> Result<(), Failed> {
    let topic = Topic::new("t")?;
    let new = |number: u8, key: &str| -> Result<NewEvent, Failed> {
        let event = NewEvent::new(topic.clone(), Json::of(&number)?);
        Ok(event.ordering(Ordering::Key(OrderKey::new(key)?)))
    };
    let all = [new(1, "a")?, new(2, "a")?, new(3, "b")?, new(4, "c")?, new(5, "d")?];
    let ids: [EventId; 5] = all.each_ref().map(|event| event.id);
    desk.wait(desk.store.publish(all.to_vec()))?;
    desk.sql(include_str!("damage_events.sql"))?;
    let claim = || EventClaimRequest::new(WorkerId::new()).limit(10);
    let held = desk.wait(desk.store.claim_events(claim()))?;
    let numbers = |claims: &[EventClaim]| -> Vec<String> {
        let mut all: Vec<_> = claims.iter().map(|it| it.payload.as_str().to_owned()).collect();
        all.sort_unstable();
        all
    };
    same("claimed", &Value::from(numbers(&held)), Value::from(vec!["2", "3", "5"]))?;
    let audit = desk.json(&["audit", "--action", "event.set_aside"])?;
    same("audited", &Value::from(rows(&audit, "")?.len()), 2)?;
    for id in [&ids[0], &ids[3]] {
        let out = desk.run(&["outbox", "show", &id.to_string()])?;
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        same(&why, &Value::from(why.contains(&id.to_string())), true)?;
    }
    let out = desk.run(&["verify", "--json"])?;
    let said: Value = serde_json::from_slice(&out.stdout)?;
    same("broken", at(&said, "/looked_at/breaches"), 2)?;
    desk.sql(include_str!("mend_events.sql"))?;
    desk.json(&["outbox", "replay", &ids[0].to_string()])?;
    let again = desk.wait(desk.store.claim_events(claim()))?;
    same("replayed", &Value::from(numbers(&again)), Value::from(vec!["1"]))?;
    desk.sql(include_str!("lapse_events.sql"))?;
    let back = desk.wait(desk.store.reclaim(ReclaimRequest::events()))?.events_returned;
    same("taken back", &Value::from(back), 3)?;
    let audit = desk.json(&["audit", "--action", "event.set_aside"])?;
    same("audited", &Value::from(rows(&audit, "")?.len()), 3)
}

/// Ended jobs that were set back to waiting, letters whose jobs are gone, and the store's own row.
///
/// Proves: GLO-1
pub(crate) fn verify_sees_what_was_set_back_or_lost(desk: &Desk) -> Result<(), Failed> {
    let queue = QueueName::new("q")?;
    let done = desk.enqueue(job("q")?)?.to_string();
    let request = ClaimRequest::new(WorkerId::new(), [queue.clone()]);
    let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
    desk.wait(desk.store.succeed(claim.fence))?;
    let dead = desk.enqueue(job("q")?)?.to_string();
    desk.kill_one("q")?;
    let fail = || -> Result<String, Failed> {
        let id = desk.enqueue(job("q")?)?.to_string();
        let request = ClaimRequest::new(WorkerId::new(), [queue.clone()]);
        let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
        let failure = Failure::new(FailureCode::SchemaInvalid, "no good");
        let end = Settlement::new(claim.fence, Verdict::Fail { failure });
        desk.wait(desk.store.settle_one(end))?;
        Ok(id)
    };
    let failed = fail()?;
    let cancelled = desk.enqueue(job("q")?)?.to_string();
    desk.json(&["jobs", "cancel", &cancelled])?;
    let retried = fail()?;
    desk.json(&["jobs", "retry", &retried])?;
    desk.wait(desk.store.control(Control::Pause(queue)))?;
    same("clean", at(&desk.json(&["verify"])?, "/looked_at/breaches"), 0)?;
    desk.sql(include_str!("set_back.sql"))?;
    let breaches = |wanted: &[(&str, &str)]| -> Result<(), Failed> {
        let out = desk.run(&["verify", "--json"])?;
        same("exit code", &Value::from(out.status.code()), 5)?;
        let said: Value = serde_json::from_slice(&out.stdout)?;
        for (id, why) in wanted {
            let is_it = |row: &Value| {
                at(row, "/id").as_str().is_some_and(|it| it.starts_with(id))
                    && at(row, "/broken").as_str().is_some_and(|it| it.contains(why))
            };
            let found = rows(&said, "breaches")?.iter().any(is_it);
            same(&format!("{id} {why}: {said}"), &Value::from(found), true)?;
        }
        Ok(())
    };
    breaches(&[
        (&done, "waits, though it has succeeded"),
        (&dead, "but its job goes on"),
        (&failed, "has failed and nobody retried it"),
        (&cancelled, "waits, though it was cancelled"),
    ])?;
    // A letter whose job goes on is not replayed, and the exit code says so.
    let replay = ["dead", "replay", "--queue", "q", "--note", "n", "--safe-to-repeat", "--json"];
    let out = desk.run(&replay)?;
    same("refused", &Value::from(out.status.code()), 4)?;
    let said: Value = serde_json::from_slice(&out.stdout)?;
    let outcome = at(&said, "/rows/0/outcome").as_str().unwrap_or_default();
    same(outcome, &Value::from(outcome.starts_with("refused: ")), true)?;
    desk.sql(include_str!("lose_jobs.sql"))?;
    breaches(&[(&dead, "of a job that is not there"), ("", "cannot be read: the ")])
}

/// A queue whose row cannot be read is listed as such and told as a breach; the others are shown beside it.
///
/// Proves: GLO-1, QUE-6
pub(crate) fn a_damaged_queue_hides_no_other(desk: &Desk) -> Result<(), Failed> {
    for name in ["a", "b"] {
        desk.wait(desk.store.control(Control::Pause(QueueName::new(name)?)))?;
    }
    desk.sql(include_str!("damage_queue.sql"))?;
    let listed = desk.json(&["queues", "list"])?;
    let why = at(&listed, "/rows/0/paused").as_str().unwrap_or_default();
    same(why, &Value::from(why.starts_with("cannot be read: ")), true)?;
    same("b", at(&listed, "/rows/1/queue"), "b")?;
    same("b", at(&desk.json(&["status"])?, "/queues/rows/0/queue"), "b")?;
    let out = desk.run(&["verify", "--json"])?;
    same("exit code", &Value::from(out.status.code()), 5)?;
    let said: Value = serde_json::from_slice(&out.stdout)?;
    same("what", at(&said, "/breaches/rows/0/what"), "queue")
}
