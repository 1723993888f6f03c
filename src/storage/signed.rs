//! Owns reading and writing by one request to a URL, in pieces: URLs that carry their own signature, and
//! large files over plain HTTP.

use std::io::Write as _;
use std::path::Path;

use futures_util::stream;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::CONTENT_LENGTH;
use hyper::{Request, Uri};
use leasehold_core::{Failure, FailureCode, Result};
use tokio::io::AsyncReadExt;

use super::Place;
use super::client::{Answered, Body, Service};
use super::failure::{broken, failure_of_answer};
use crate::workspace::{self, Bounded};

/// How much of a file is read at once, in bytes.
const PIECE: usize = 256 * 1024;

fn network(error: &(dyn std::error::Error + 'static)) -> Failure {
    broken(error, FailureCode::ConnectionReset)
}

impl Service {
    pub(super) async fn get(
        &self,
        (url, place): (&Uri, &Place),
        into: &mut Bounded,
    ) -> Result<u64, Failure> {
        let request =
            Request::get(url).body(Empty::new().map_err(|never| match never {}).boxed_unsync());
        let request = request.map_err(|error| network(&error))?;
        let response = self.send(request).await.map_err(|error| network(&error))?;
        if !response.status().is_success() {
            return Err(failure_of_answer(
                Answered::of(response.status(), response.headers()),
                place,
            ));
        }
        let told = response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if let Some(size) = told.and_then(|text| text.parse().ok()) {
            into.admit(size).map_err(|error| workspace::failure(&error))?;
        }
        let mut body = response.into_body();
        loop {
            let next = tokio::time::timeout(self.timeout(), body.frame()).await;
            let late = |_| Failure::new(FailureCode::NetworkTimeout, "storage was silent too long");
            let Some(frame) = next.map_err(late)? else { return Ok(into.size()) };
            let frame = frame.map_err(|error| network(&error))?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            into.write_all(data).map_err(|error| workspace::failure(&error))?;
        }
    }

    pub(super) async fn put(
        &self,
        file: &Path,
        (url, place): (&Uri, &Place),
    ) -> Result<(), Failure> {
        let unread = |error: std::io::Error| workspace::failure(&error);
        let file = tokio::fs::File::open(file).await.map_err(unread)?;
        let size = file.metadata().await.map_err(unread)?.len();
        let pieces = stream::try_unfold(file, |mut file| async move {
            let mut piece = vec![0; PIECE];
            let count = file.read(&mut piece).await?;
            piece.truncate(count);
            Ok((count > 0).then(|| (Frame::data(Bytes::from(piece)), file)))
        });
        let pieces = StreamBody::new(pieces).map_err(|error: std::io::Error| error.into());
        let body: Body = pieces.boxed_unsync();
        let request = Request::put(url).header(CONTENT_LENGTH, size).body(body);
        let request = request.map_err(|error| network(&error))?;
        let response = self.send(request).await.map_err(|error| network(&error))?;
        match response.status().is_success() {
            true => Ok(()),
            false => {
                Err(failure_of_answer(Answered::of(response.status(), response.headers()), place))
            }
        }
    }
}
