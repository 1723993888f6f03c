//! Owns what the audit log promises: what was added is there for good, and can be found.

use leasehold_core::lab::{Ending, RecordReply, RecordStep, Reply, Step};
use leasehold_core::{
    Actor, AuditEntry, AuditFilter, AuditView, ErrorKind, Paging, PruneRequest, Result,
};

use super::group;
use crate::lab::{Lab, actor, assert_refused, job, seconds};

group!("audit": entry_is_kept_as_it_was, filters_find_their_entries, log_is_read_in_pages,
    acts_on_jobs_stand_in_the_same_log, entry_outlasts_every_prune, overlong_entry_is_refused,
    rolled_back_entry_was_never_there);

fn by(name: &str) -> Actor {
    Actor::new(name).expect("an actor")
}

async fn entries(lab: &Lab, filter: AuditFilter) -> Result<Vec<AuditView>> {
    Ok(lab.audit(filter, Paging::first(100)).await?.items)
}

/// Each entry has an id of its own and the store's time.
///
/// Proves: LOG-2, REC-1
async fn entry_is_kept_as_it_was(lab: &Lab) -> Result<()> {
    let entry =
        AuditEntry::new(by("ann"), "allow_list.change", "//depot/a").detail("line 1\nline 2");
    let id = lab.append(entry.clone()).await?;
    let other = lab.append(entry).await?;
    assert_ne!(id, other);
    let found = entries(lab, AuditFilter::new()).await?;
    assert_eq!(found.len(), 2);
    let first = found.iter().find(|entry| entry.id == id).expect("an entry");
    assert_eq!((&first.actor, first.action.as_str()), (&by("ann"), "allow_list.change"));
    assert_eq!((first.target.as_str(), first.at), ("//depot/a", lab.clock().now()));
    assert_eq!(first.detail.as_deref(), Some("line 1\nline 2"));
    Ok(())
}

/// A filter lets through what fits all of it.
///
/// Proves: REC-1
async fn filters_find_their_entries(lab: &Lab) -> Result<()> {
    for (actor, action, target) in [
        ("ann", "open", "door 1"),
        ("ann", "close", "door 1"),
        ("bob", "open", "door 1"),
        ("bob", "open", "door 2"),
    ] {
        lab.append(AuditEntry::new(by(actor), action, target)).await?;
    }
    let all = AuditFilter::new;
    let cases = [
        (all(), 4),
        (all().actor(by("ann")), 2),
        (all().action("open"), 3),
        (all().target("door 1"), 3),
        (all().actor(by("bob")).target("door 1"), 1),
        (all().actor(by("ann")).action("close"), 1),
        (all().action("close").target("door 2"), 0),
        (all().actor(by("eve")), 0),
    ];
    for (filter, expected) in cases {
        let found = entries(lab, filter.clone()).await?.len();
        assert_eq!(found, expected, "{filter:?}");
    }
    Ok(())
}

/// Pages neither repeat nor skip, though entries are added in between.
///
/// Proves: QUE-6, REC-1
async fn log_is_read_in_pages(lab: &Lab) -> Result<()> {
    for number in 0..5 {
        lab.append(AuditEntry::new(by("ann"), "count", format!("n {number}"))).await?;
    }
    let filter = AuditFilter::new().actor(by("ann"));
    let (mut read, mut paging) = (Vec::new(), Paging::first(2));
    loop {
        let page = lab.audit(filter.clone(), paging).await?;
        read.extend(page.items.into_iter().map(|entry| entry.target));
        lab.append(AuditEntry::new(by("bob"), "count", "another")).await?;
        let Some(next) = page.next else { break };
        paging = Paging::first(2).after(next);
    }
    assert_eq!(read, ["n 0", "n 1", "n 2", "n 3", "n 4"]);
    assert_refused(lab.audit(filter, Paging::first(0)).await, ErrorKind::Invalid);
    Ok(())
}

/// What operators do to jobs is found in the log beside everything else.
///
/// Proves: GLO-1, REC-1
async fn acts_on_jobs_stand_in_the_same_log(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    lab.cancel(id).await?;
    let found = entries(lab, AuditFilter::new().actor(actor())).await?;
    assert_eq!(found.len(), 1);
    assert!(found[0].target.contains(&id.to_string()), "{found:?}");
    Ok(())
}

/// Nothing lets go of an entry.
///
/// Proves: REC-1
async fn entry_outlasts_every_prune(lab: &Lab) -> Result<()> {
    lab.append(AuditEntry::new(by("ann"), "open", "door 1")).await?;
    let before = lab.dump().await?;
    lab.clock().advance(seconds(100 * 365 * 24 * 3600));
    lab.prune(PruneRequest::new().older_than(seconds(0))).await?;
    lab.assert_unchanged(&before).await
}

/// An entry without an action or with too much text is refused.
///
/// Proves: REC-1
async fn overlong_entry_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let entry = || AuditEntry::new(by("ann"), "open", "door 1");
    for bad in [
        AuditEntry::new(by("ann"), "", "door 1"),
        AuditEntry::new(by("ann"), "open", "x".repeat(256)),
        entry().detail("x".repeat(16 * 1024 + 1)),
        entry().detail("a\0b"),
    ] {
        assert_refused(lab.append(bad).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await?;
    lab.append(entry().detail("x".repeat(16 * 1024))).await?;
    Ok(())
}

/// An entry shares the fate of the caller's rows, and is read within the transaction.
///
/// Proves: REC-1, TX-2
async fn rolled_back_entry_was_never_there(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let add = |target| Step::Record(RecordStep::Append(AuditEntry::new(by("ann"), "open", target)));
    lab.play(vec![add("door 1")], Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    let read = Step::Record(RecordStep::Audit(AuditFilter::new(), Paging::first(9)));
    let script =
        vec![add("door 1"), Step::Savepoint, add("door 2"), Step::RollbackToSavepoint, read];
    let mut replies = lab.play(script, Ending::Commit).await?;
    let Some(Reply::Record(RecordReply::Audit(seen))) = replies.pop() else {
        panic!("a listing answers as one")
    };
    assert_eq!(seen?.items.len(), 1);
    assert_eq!(entries(lab, AuditFilter::new()).await?[0].target, "door 1");
    Ok(())
}
