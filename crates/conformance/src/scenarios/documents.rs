//! Owns what versioned documents promise: a write counts only where it says what it replaces, an end
//! comes at once, and a version never comes again.

use leasehold_core::lab::{Ending, RecordReply, RecordStep, Reply, Step};
use leasehold_core::{
    DeleteDocument, Document, ErrorKind, Expected, ListDocuments, Namespace, PruneRequest,
    PutDocument, RecordId, Result,
};

use super::group;
use crate::lab::{Lab, assert_refused, json, json_of, seconds};

group!("documents": put_and_get_agree, version_must_fit, absent_must_be_absent,
    delete_wants_its_version, document_ends_at_once, version_never_comes_again,
    pruned_version_is_gone_in_the_end, put_without_end_lifts_the_end, listing_walks_a_prefix_in_pages,
    oversized_document_is_refused, rolled_back_document_was_never_there,
    conflict_leaves_the_transaction_usable, dyn_store_reaches_its_records);

fn id(key: &str) -> RecordId {
    RecordId::new("settings", key).expect("a name")
}

fn put(key: &str, number: i64) -> PutDocument {
    PutDocument::new(id(key), json(number))
}

fn delete(key: &str) -> DeleteDocument {
    DeleteDocument::new(id(key))
}

/// What a put answers is what a reader gets, and a second put goes on from it.
///
/// Proves: REC-1
async fn put_and_get_agree(lab: &Lab) -> Result<()> {
    assert_eq!(lab.get(id("a")).await?, None);
    let first = lab.put(put("a", 1)).await?;
    assert_eq!((first.version, &first.body, first.expires_at), (1, &json(1), None));
    assert_eq!(first.created_at, lab.clock().now());
    assert_eq!(lab.get(id("a")).await?.as_ref(), Some(&first));
    lab.advance(5);
    let second = lab.put(put("a", 2)).await?;
    assert_eq!((second.version, second.created_at), (2, first.created_at));
    assert_eq!(second.updated_at, lab.clock().now());
    assert_eq!(lab.get(id("a")).await?, Some(second));
    assert_eq!(lab.get(RecordId::new("other", "a")?).await?, None);
    Ok(())
}

/// A write over another version than it says is refused and changes nothing.
///
/// Proves: REC-1
async fn version_must_fit(lab: &Lab) -> Result<()> {
    let none = put("a", 1).expected(Expected::Version(1));
    assert_refused(lab.put(none).await, ErrorKind::Conflict);
    lab.put(put("a", 1)).await?;
    lab.put(put("a", 2).expected(Expected::Version(1))).await?;
    let before = lab.dump().await?;
    for late in [0, 1, 3] {
        let stale = put("a", 3).expected(Expected::Version(late));
        assert_refused(lab.put(stale).await, ErrorKind::Conflict);
    }
    lab.assert_unchanged(&before).await?;
    assert_eq!(lab.put(put("a", 3).expected(Expected::Version(2))).await?.version, 3);
    Ok(())
}

/// A document that must be new is refused where one is.
///
/// Proves: REC-1
async fn absent_must_be_absent(lab: &Lab) -> Result<()> {
    let new = || put("a", 1).expected(Expected::Absent);
    lab.put(new()).await?;
    let before = lab.dump().await?;
    assert_refused(lab.put(new()).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await?;
    assert!(lab.delete(delete("a")).await?);
    lab.put(new()).await?;
    Ok(())
}

/// A deletion of another version is refused; a repeated one finds nothing, which is no error.
///
/// Proves: GLO-2, REC-1
async fn delete_wants_its_version(lab: &Lab) -> Result<()> {
    let first = || delete("a").expected(Expected::Version(1));
    assert!(!lab.delete(first()).await?);
    lab.put(put("a", 1)).await?;
    lab.put(put("a", 2)).await?;
    let before = lab.dump().await?;
    assert_refused(lab.delete(first()).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await?;
    let second = || delete("a").expected(Expected::Version(2));
    assert!(lab.delete(second()).await?);
    let before = lab.dump().await?;
    assert!(!lab.delete(second()).await?);
    assert_eq!(lab.get(id("a")).await?, None);
    lab.assert_unchanged(&before).await
}

async fn keys(lab: &Lab, list: ListDocuments) -> Result<Vec<String>> {
    let page = lab.list(list).await?;
    Ok(page.items.iter().map(|found: &Document| found.id.key.to_string()).collect())
}

fn all() -> ListDocuments {
    ListDocuments::new(Namespace::new("settings").expect("a namespace"))
}

/// At its end a document is absent to every verb, pruned or not.
///
/// Proves: REC-1
async fn document_ends_at_once(lab: &Lab) -> Result<()> {
    let made = lab.put(put("a", 1).ttl(seconds(60))).await?;
    lab.put(put("b", 1)).await?;
    assert_eq!(made.expires_at, Some(made.updated_at.plus(seconds(60))));
    lab.advance(59);
    assert_eq!(keys(lab, all()).await?, ["a", "b"]);
    lab.advance(1);
    assert_eq!((lab.get(id("a")).await?, keys(lab, all()).await?), (None, vec!["b".to_owned()]));
    assert!(!lab.delete(delete("a")).await?);
    let stale = put("a", 2).expected(Expected::Version(1));
    assert_refused(lab.put(stale).await, ErrorKind::Conflict);
    let anew = lab.put(put("a", 2).expected(Expected::Absent)).await?;
    assert_eq!((anew.version, anew.created_at), (2, lab.clock().now()));
    Ok(())
}

/// A document that went and came back never has a version that somebody may still hold.
///
/// Proves: REC-1
async fn version_never_comes_again(lab: &Lab) -> Result<()> {
    lab.put(put("a", 1)).await?;
    lab.delete(delete("a")).await?;
    assert_eq!(lab.put(put("a", 2)).await?.version, 3);
    lab.put(put("b", 1).ttl(seconds(9))).await?;
    lab.advance(9);
    let pruned = lab.prune(PruneRequest::new()).await?;
    assert_eq!((pruned.documents, pruned.versions), (1, 0));
    let stored = lab.dump().await?.rows("documents").join("\n");
    assert!(stored.contains("body=- ") && stored.contains("key=\"b\""), "{stored}");
    assert_eq!(lab.prune(PruneRequest::new()).await?.total(), 0);
    assert_eq!(lab.put(put("b", 2)).await?.version, 2);
    Ok(())
}

/// A version outlasts its document for as long as tombstones are kept, and goes then.
///
/// Proves: REC-1
async fn pruned_version_is_gone_in_the_end(lab: &Lab) -> Result<()> {
    lab.put(put("a", 1)).await?;
    lab.delete(delete("a")).await?;
    lab.put(put("kept", 1)).await?;
    let week = 7 * 24 * 3600;
    lab.advance(week - 1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.versions, 0);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.versions, 1);
    assert_eq!(lab.dump().await?.rows("documents").len(), 1);
    assert_eq!(lab.put(put("a", 2)).await?.version, 1);
    Ok(())
}

/// A put says anew when the document ends.
///
/// Proves: REC-1
async fn put_without_end_lifts_the_end(lab: &Lab) -> Result<()> {
    lab.put(put("a", 1).ttl(seconds(5))).await?;
    lab.put(put("a", 2)).await?;
    lab.advance(60);
    assert_eq!(lab.get(id("a")).await?.map(|found| found.body), Some(json(2)));
    assert_eq!(lab.prune(PruneRequest::new()).await?.total(), 0);
    Ok(())
}

/// A listing gives the keys of a prefix in the order of their bytes, page by page, ends left out.
///
/// Proves: QUE-6, REC-1
async fn listing_walks_a_prefix_in_pages(lab: &Lab) -> Result<()> {
    for key in ["b/3", "b/1", "b", "a/9", "b/é", "b/Z", "b/\u{10FFFF}", "b0", "c"] {
        lab.put(put(key, 1)).await?;
    }
    lab.put(put("b/2", 1).ttl(seconds(1))).await?;
    lab.put(PutDocument::new(RecordId::new("another", "b/0")?, json(1))).await?;
    lab.advance(1);
    let mut walked = Vec::new();
    let mut list = all().prefix("b/").limit(2);
    loop {
        let page = lab.list(list.clone()).await?;
        walked.extend(page.items.iter().map(|found| found.id.key.to_string()));
        assert!(page.items.len() == 2 || page.next.is_none());
        let Some(next) = page.next else { break };
        list = list.after(next);
    }
    assert_eq!(walked, ["b/1", "b/3", "b/Z", "b/é", "b/\u{10FFFF}"]);
    assert_eq!(keys(lab, all()).await?.len(), 9);
    assert_refused(lab.list(all().limit(0)).await, ErrorKind::Invalid);
    assert_refused(lab.list(all().limit(1_001)).await, ErrorKind::Invalid);
    assert_refused(lab.list(all().prefix("b\0")).await, ErrorKind::Invalid);
    Ok(())
}

/// A document over the limit is refused and not kept.
///
/// Proves: PAR-4, REC-1
async fn oversized_document_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let large = PutDocument::new(id("a"), json_of((1 << 20) + 1));
    assert_refused(lab.put(large).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await?;
    lab.put(PutDocument::new(id("a"), json_of(1 << 20))).await?;
    Ok(())
}

/// Documents of a transaction that is rolled back, whole or to a savepoint, were never there.
///
/// Proves: REC-1, TX-2
async fn rolled_back_document_was_never_there(lab: &Lab) -> Result<()> {
    lab.put(put("a", 1)).await?;
    let before = lab.dump().await?;
    let record = |step| Step::Record(step);
    let script =
        || vec![record(RecordStep::Put(put("a", 2))), record(RecordStep::Put(put("b", 1)))];
    lab.play(script(), Ending::RollBack).await?;
    lab.play(script(), Ending::Drop).await?;
    lab.assert_unchanged(&before).await?;
    let script = vec![
        record(RecordStep::Put(put("b", 1))),
        Step::Savepoint,
        record(RecordStep::Delete(delete("a"))),
        record(RecordStep::Put(put("b", 2))),
        Step::RollbackToSavepoint,
        record(RecordStep::Get(id("b"))),
        Step::OwnRow("kept".to_owned()),
    ];
    let mut replies = lab.play(script, Ending::Commit).await?;
    let Reply::Record(RecordReply::Get(seen)) = replies.remove(5) else { panic!("a get answers") };
    assert_eq!(seen?.map(|found| found.version), Some(1));
    assert_eq!(lab.get(id("a")).await?.map(|found| found.version), Some(1));
    assert_eq!(lab.dump().await?.rows("lab_rows").len(), 1);
    Ok(())
}

/// A version that does not fit is an answer: the caller's transaction goes on and commits.
///
/// Proves: ERR-1, REC-1, TX-2
async fn conflict_leaves_the_transaction_usable(lab: &Lab) -> Result<()> {
    lab.put(put("a", 1)).await?;
    let script = vec![
        Step::Record(RecordStep::Put(put("a", 2).expected(Expected::Absent))),
        Step::Record(RecordStep::Put(put("a", 3).expected(Expected::Version(1)))),
        Step::Record(RecordStep::List(all())),
    ];
    let replies = lab.play(script, Ending::Commit).await?;
    let kinds: Vec<_> = replies
        .iter()
        .map(|reply| match reply {
            Reply::Record(RecordReply::Put(answer)) => answer.as_ref().err().map(|e| e.kind()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [Some(ErrorKind::Conflict), None, None]);
    assert_eq!(lab.get(id("a")).await?.map(|found| found.body), Some(json(3)));
    Ok(())
}

/// Whoever holds a store of any engine reaches its records.
///
/// Proves: REC-1
async fn dyn_store_reaches_its_records(lab: &Lab) -> Result<()> {
    lab.records().put(put("a", 7)).await?;
    assert_eq!(lab.get(id("a")).await?.map(|found| found.body), Some(json(7)));
    Ok(())
}
