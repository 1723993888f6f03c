//! Owns what blobs promise: the same bytes back, an end that comes at once, one fate with the caller.

use leasehold_core::lab::{Ending, RecordReply, RecordStep, Reply, Step};
use leasehold_core::{ErrorKind, PruneRequest, PutBlob, PutDocument, RecordId, Result};

use super::group;
use crate::lab::{Lab, assert_refused, json, seconds};

group!("blobs": bytes_come_back_as_they_were, later_blob_replaces_the_earlier, blob_ends_at_once,
    blobs_and_documents_share_no_names, oversized_blob_is_refused, rolled_back_blob_was_never_there);

fn id(key: &str) -> RecordId {
    RecordId::new("uploads", key).expect("a name")
}

/// Every byte comes back, in its place; so does nothing at all.
///
/// Proves: REC-1
async fn bytes_come_back_as_they_were(lab: &Lab) -> Result<()> {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    lab.put_blob(PutBlob::new(id("a"), bytes.clone())).await?;
    lab.put_blob(PutBlob::new(id("empty"), [])).await?;
    assert_eq!(lab.get_blob(id("a")).await?, Some(bytes));
    assert_eq!(lab.get_blob(id("empty")).await?, Some(Vec::new()));
    assert_eq!(lab.get_blob(id("b")).await?, None);
    Ok(())
}

/// A second put is what is kept, its end included.
///
/// Proves: REC-1
async fn later_blob_replaces_the_earlier(lab: &Lab) -> Result<()> {
    lab.put_blob(PutBlob::new(id("a"), [1; 9]).ttl(seconds(5))).await?;
    lab.put_blob(PutBlob::new(id("a"), [2; 3])).await?;
    lab.advance(60);
    assert_eq!(lab.get_blob(id("a")).await?, Some(vec![2; 3]));
    assert!(lab.delete_blob(id("a")).await?);
    assert!(!lab.delete_blob(id("a")).await?);
    assert_eq!(lab.get_blob(id("a")).await?, None);
    Ok(())
}

/// At its end a blob is absent, and prune lets go of its bytes and of no others.
///
/// Proves: REC-1
async fn blob_ends_at_once(lab: &Lab) -> Result<()> {
    for key in ["a", "b"] {
        lab.put_blob(PutBlob::new(id(key), [1; 3]).ttl(seconds(60))).await?;
    }
    lab.put_blob(PutBlob::new(id("c"), [1; 3])).await?;
    lab.advance(59);
    assert!(lab.get_blob(id("a")).await?.is_some());
    assert_eq!(lab.prune(PruneRequest::new()).await?.blobs, 0);
    lab.advance(1);
    assert_eq!(lab.get_blob(id("a")).await?, None);
    assert!(!lab.delete_blob(id("b")).await?);
    assert_eq!(lab.prune(PruneRequest::new()).await?.blobs, 1);
    assert_eq!(lab.dump().await?.rows("blobs").len(), 1);
    Ok(())
}

/// A blob and a document under one name are two things.
///
/// Proves: REC-1
async fn blobs_and_documents_share_no_names(lab: &Lab) -> Result<()> {
    lab.put_blob(PutBlob::new(id("a"), [1; 3])).await?;
    lab.put(PutDocument::new(id("a"), json(1))).await?;
    assert!(lab.delete_blob(id("a")).await?);
    assert!(lab.get(id("a")).await?.is_some());
    Ok(())
}

/// A blob over the limit is refused and not kept.
///
/// Proves: PAR-4, REC-1
async fn oversized_blob_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let large = PutBlob::new(id("a"), vec![0; (16 << 20) + 1]);
    assert_refused(lab.put_blob(large).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A blob that is rolled back was never there; within its transaction it is seen.
///
/// Proves: REC-1, TX-2
async fn rolled_back_blob_was_never_there(lab: &Lab) -> Result<()> {
    lab.put_blob(PutBlob::new(id("a"), [1; 3])).await?;
    let before = lab.dump().await?;
    let script = || {
        vec![
            Step::Record(RecordStep::PutBlob(PutBlob::new(id("b"), [2; 3]))),
            Step::Record(RecordStep::DeleteBlob(id("a"))),
            Step::Record(RecordStep::GetBlob(id("b"))),
        ]
    };
    lab.play(script(), Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    let mut replies = lab.play(script(), Ending::Commit).await?;
    let Some(Reply::Record(RecordReply::GetBlob(seen))) = replies.pop() else {
        panic!("a get answers as one")
    };
    assert_eq!(seen?, Some(vec![2; 3]));
    assert_eq!(lab.get_blob(id("a")).await?, None);
    Ok(())
}
