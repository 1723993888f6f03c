//! Owns one request to an endpoint: a single total time-out, no redirects, and of the answer no more
//! than its status, its `Retry-After` and the beginning of its body. Knows nothing of what is asked.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::RETRY_AFTER;
use hyper::{Method, Request, Response, Uri};
use leasehold_core::failure::retry_after;
use leasehold_core::{Failure, FailureCode, Result};

use super::connect::Unresolved;
use super::target::Blocked;
use super::way::{Pool, WayOut};

/// How much of an answer's body is read and kept, in bytes.
const EXCERPT_BYTES_MAX: usize = 1024;
/// How long the beginning of a body is waited for; the status has decided by then.
const EXCERPT_WAIT: Duration = Duration::from_secs(1);

/// What an endpoint answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) excerpt: Vec<u8>,
}

/// Sends requests over one pool of connections.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool<Full<Bytes>>,
    timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The most that is read of a body that is more than an excerpt, in bytes.
#[cfg(any(feature = "notify", feature = "credentials"))]
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

impl Client {
    /// A client that goes out this way, and waits so long unless it says otherwise.
    pub(crate) fn new(way: &WayOut, timeout: Duration) -> Result<Self> {
        Ok(Self { pool: way.pool()?, timeout: way.timeout_or(timeout) })
    }

    /// Posts a body, and reads the beginning of the answer's; whatever status comes is an answer.
    ///
    /// # Errors
    /// The failure when none came.
    pub(crate) async fn post(
        &self,
        url: &Uri,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Answer, Failure> {
        self.ask(Method::POST, url, headers, body, (EXCERPT_BYTES_MAX, EXCERPT_WAIT)).await
    }

    /// Sends a request and reads so much of the answer's body, for so long.
    ///
    /// # Errors
    /// The failure when no answer came.
    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &Uri,
        headers: &[(String, String)],
        body: &[u8],
        (bytes_max, wait): (usize, Duration),
    ) -> Result<Answer, Failure> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).map_err(|error| {
            Failure::new(FailureCode::ConfigInvalid, format!("no request: {error}"))
        })?;
        let heard = tokio::time::timeout(self.timeout, self.pool.request(request)).await;
        let late = |_| Failure::new(FailureCode::NetworkTimeout, "no answer in time");
        let response = heard.map_err(late)?.map_err(|error| unheard(&error))?;
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after =
            asked.zip(super::now().ok()).and_then(|(text, now)| retry_after(text, now));
        let status = response.status().as_u16();
        Ok(Answer { status, retry_after, excerpt: excerpt(response, bytes_max, wait).await })
    }
}

/// The beginning of a body. The rest is not read: the connection ends with it.
async fn excerpt(response: Response<Incoming>, bytes_max: usize, wait: Duration) -> Vec<u8> {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    let read = async {
        while bytes.len() < bytes_max
            && let Some(Ok(frame)) = body.frame().await
        {
            let data = frame.data_ref().map_or(&[][..], |data| data);
            let room = bytes_max - bytes.len();
            bytes.extend(data.iter().take(room));
        }
    };
    let _the_status_counts = tokio::time::timeout(wait, read).await;
    bytes
}

/// Why no answer came, by what lies at the bottom of it.
fn unheard(error: &hyper_util::client::legacy::Error) -> Failure {
    let mut code = if error.is_connect() {
        FailureCode::ConnectionRefused
    } else {
        FailureCode::ConnectionReset
    };
    let mut why = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        why = inner.to_string();
        if inner.is::<Blocked>() {
            code = FailureCode::PolicyRejected;
        } else if inner.is::<Unresolved>() {
            code = FailureCode::DnsFailed;
        }
        cause = inner.source();
    }
    Failure::new(code, why)
}
