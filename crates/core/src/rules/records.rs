//! Owns the decisions on records: whether a document's version fits, which answer counts, how many
//! tokens a bucket holds. Each takes what is stored (or nothing) and gives what is to be stored.

use std::time::Duration;

use super::bucket::{Bucket, Level};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use crate::record::{
    DeleteDocument, Document, Expected, Once, PutDocument, RecordId, Remembered, Take, Taken,
};
use crate::row::{DocumentRow, RecordRow, TokensRow};
use crate::time::Timestamp;

/// Whether an end has come.
fn ended(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

/// The document that a row holds now; none once it was deleted or is past its end.
pub fn document(row: DocumentRow, now: Timestamp) -> Option<Document> {
    let body = row.body.filter(|_| !ended(row.expires_at, now))?;
    let (version, times) = (row.version, (row.created_at, row.updated_at));
    Some(Document::from_parts(row.id, (version, body), times, row.expires_at))
}

/// The document that a put has stored.
pub fn stored(row: &DocumentRow, body: &Json) -> Document {
    let (version, times) = (row.version, (row.created_at, row.updated_at));
    Document::from_parts(row.id.clone(), (version, body.clone()), times, row.expires_at)
}

fn check_expected(
    operation: &'static str,
    id: &RecordId,
    expected: Expected,
    held: Option<&Document>,
) -> Result<()> {
    let why = match (expected, held) {
        (Expected::Any, _) | (Expected::Absent, None) => return Ok(()),
        (Expected::Version(wanted), Some(held)) if held.version == wanted => return Ok(()),
        (Expected::Absent, Some(held)) => format!("it is there, at version {}", held.version),
        (Expected::Version(wanted), Some(held)) => {
            format!("it is at version {}, not {wanted}", held.version)
        }
        (Expected::Version(wanted), None) => format!("it is not there, at version {wanted} or any"),
    };
    Err(Error::new(ErrorKind::Conflict, operation, why).about(format!("document {id}")))
}

/// What a put stores, in place of what was found.
///
/// # Errors
/// `Conflict` when what is there is not what was expected.
pub fn put_document(
    now: Timestamp,
    found: Option<DocumentRow>,
    put: &PutDocument,
) -> Result<DocumentRow> {
    let version = found.as_ref().map_or(0, |row| row.version);
    let held = found.and_then(|row| document(row, now));
    check_expected("put", &put.id, put.expected, held.as_ref())?;
    Ok(DocumentRow {
        id: put.id.clone(),
        version: version + 1,
        body: Some(put.body.clone()),
        created_at: held.map_or(now, |held| held.created_at),
        updated_at: now,
        expires_at: put.ttl.map(|ttl| now.plus(ttl)),
    })
}

/// What a deletion stores in place of what was found; `None`: there is nothing to delete.
///
/// The version stays for `keep`, so that nobody who holds an old one can write over what comes next.
///
/// # Errors
/// `Conflict` when something else is there than was expected.
pub fn delete_document(
    now: Timestamp,
    keep: Duration,
    found: Option<DocumentRow>,
    delete: &DeleteDocument,
) -> Result<Option<DocumentRow>> {
    let Some(held) = found.and_then(|row| document(row, now)) else { return Ok(None) };
    check_expected("delete", &delete.id, delete.expected, Some(&held))?;
    Ok(Some(DocumentRow {
        id: held.id,
        version: held.version + 1,
        body: None,
        created_at: held.created_at,
        updated_at: now,
        expires_at: Some(now.plus(keep)),
    }))
}

/// The answer to a request, and what is to be stored, if anything.
///
/// # Errors
/// `Conflict` when the key holds another request.
pub fn once(
    now: Timestamp,
    found: Option<RecordRow>,
    request: &Once,
) -> Result<(Remembered, Option<RecordRow>)> {
    if let Some(held) = found.filter(|row| row.expires_at > now) {
        if held.hash != request.hash {
            let why = format!("key {:?} is taken by another request", request.key.as_str());
            return Err(Error::new(ErrorKind::Conflict, "once", why));
        }
        match (held.response, &request.response) {
            (Some(stored), _) => return Ok((Remembered::Stored(stored), None)),
            (None, None) => return Ok((Remembered::InProgress, None)),
            (None, Some(_)) => {}
        }
    }
    let row = RecordRow {
        scope: request.scope.clone(),
        key: request.key.clone(),
        hash: request.hash,
        response: request.response.clone(),
        created_at: now,
        expires_at: now.plus(request.ttl),
    };
    Ok((Remembered::New, Some(row)))
}

/// The answer to a wish for tokens, and what is to be stored; a refusal stores nothing.
pub fn take(now: Timestamp, found: Option<TokensRow>, wish: &Take) -> (Taken, Option<TokensRow>) {
    let found = found.map(|row| Level { level: row.level, at: row.at, full_at: row.full_at });
    let mut bucket = Bucket::at(now, wish.rate, wish.burst, found);
    let wait = bucket.wait(wish.tokens);
    if !wait.is_zero() {
        return (Taken::Wait(wait), None);
    }
    bucket.take(u64::from(wish.tokens));
    let Level { level, at, full_at } = bucket.level();
    (Taken::Granted, Some(TokensRow { bucket: wish.bucket.clone(), level, at, full_at }))
}

#[cfg(test)]
mod tests {
    use super::super::bucket::TOKEN;
    use super::*;
    use crate::name::BucketName;
    use crate::record::Rate;

    fn wish(tokens: u32) -> Take {
        Take::new(BucketName::new("mail").unwrap(), Rate::per_second(3), 3).tokens(tokens)
    }

    fn at(us: i64) -> Timestamp {
        Timestamp::saturating(us)
    }

    /// Proves: REC-1
    #[test]
    fn thirds_of_a_second_lose_nothing() {
        let (taken, mut row) = take(at(0), None, &wish(3));
        assert_eq!(taken, Taken::Granted);
        for second in 0..100 {
            let waits = [333_334, 666_667, 1_000_000].map(|us| at(second * 1_000_000 + us));
            for due in waits {
                let early = take(due.minus(Duration::from_micros(1)), row.clone(), &wish(1));
                assert_eq!(early, (Taken::Wait(Duration::from_micros(1)), None), "{due}");
                let (taken, next) = take(due, row, &wish(1));
                assert_eq!(taken, Taken::Granted, "{due}");
                row = next;
            }
        }
    }

    /// Proves: REC-1
    #[test]
    fn clock_that_goes_back_gives_no_tokens() {
        let (_, row) = take(at(9_000_000), None, &wish(3));
        let (taken, _) = take(at(1_000_000), row.clone(), &wish(1));
        assert_eq!(taken, Taken::Wait(Duration::from_micros(333_334)));
        let (taken, row) = take(at(9_400_000), row, &wish(1));
        assert_eq!((taken, row.map(|row| row.at)), (Taken::Granted, Some(at(9_400_000))));
    }

    /// Proves: REC-1
    #[test]
    fn largest_bucket_fits() {
        let most = Take::new(BucketName::new("all").unwrap(), Rate::per_hour(1), 1_000_000_000);
        assert!(most.check().is_ok());
        let (taken, row) = take(at(0), None, &most);
        let level = row.unwrap().level;
        assert_eq!((taken, i128::from(level)), (Taken::Granted, 999_999_999 * TOKEN));
    }
}
