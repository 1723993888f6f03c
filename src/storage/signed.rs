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
        accepted(self.send_file(file, url).await?, place).map_err(|failure| *failure)
    }

    /// Puts a file below a server's URL. Where WebDAV misses the folders on the way they are made, and the file is
    /// sent once more; a plain server refuses that, and its second answer counts.
    pub(super) async fn put_below(
        &self,
        file: &Path,
        (folders, url): (&[Uri], &Uri),
        place: &Place,
    ) -> Result<(), Failure> {
        let answered = self.send_file(file, url).await?;
        if folders.is_empty() || ![404, 409].contains(&answered.status) {
            return accepted(answered, place).map_err(|failure| *failure);
        }
        for folder in folders {
            let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
            let request = Request::builder().method("MKCOL").uri(folder).body(body);
            let request = request.map_err(|error| network(&error))?;
            // It may be there already, or be nobody's to make.
            let _the_file_s_answer_decides =
                self.send(request).await.map_err(|error| network(&error))?;
        }
        self.put(file, (url, place)).await
    }

    async fn send_file(&self, file: &Path, url: &Uri) -> Result<Answered, Failure> {
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
        Ok(Answered::of(response.status(), response.headers()))
    }
}

fn accepted(answered: Answered, place: &Place) -> Result<(), Box<Failure>> {
    match (200..=299).contains(&answered.status) {
        true => Ok(()),
        false => Err(Box::new(failure_of_answer(answered, place))),
    }
}
