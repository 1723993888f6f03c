//! Owns the way of a signed request through axum: the body as it came, verified before anything
//! reads it. Every refusal looks alike from outside; the log tells them apart.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use leasehold_core::{Error, NewJob, Store};

use super::{Accepted, Refusal, Verified, Verifier, accept};

/// What a route needs to take signed requests: part of the router's state.
///
/// ```
/// use std::sync::Arc;
///
/// use axum::http::StatusCode;
/// use axum::{Router, routing::post};
/// use leasehold::memory::MemoryStore;
/// use leasehold::webhook::{Key, Receiver, Refused, Scheme, Signed, Verifier};
/// use leasehold::{JobKind, Json, NewJob};
///
/// async fn told(signed: Signed) -> Result<StatusCode, Refused> {
///     let payload = Json::parse_bytes(signed.body()).map_err(Refused::Store)?;
///     let job = NewJob::new(JobKind::new("told").map_err(Refused::Store)?, payload);
///     signed.accept([job]).await?; // once, whatever is sent again
///     Ok(StatusCode::NO_CONTENT)
/// }
///
/// let key = Key::new(*b"an example, 32 bytes long, no key")?;
/// let verifier = Verifier::new(Scheme::euterpe(), key);
/// let receiver = Receiver::new(verifier, Arc::new(MemoryStore::new()));
/// let app: Router = Router::new().route("/hook", post(told)).with_state(receiver);
/// # let _ = app;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Receiver {
    verifier: Arc<Verifier>,
    store: Arc<dyn Store>,
}

impl Receiver {
    /// Puts a receiver together.
    pub fn new(verifier: Verifier, store: Arc<dyn Store>) -> Self {
        Self { verifier: Arc::new(verifier), store }
    }
}

/// A request whose signature and age are good, with its body; not taken yet.
#[derive(Debug)]
#[must_use]
pub struct Signed {
    verified: Verified,
    body: Bytes,
    store: Arc<dyn Store>,
}

impl Signed {
    /// The body as it came.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// What was verified.
    pub fn verified(&self) -> &Verified {
        &self.verified
    }

    /// Takes the request once, with its jobs; answer 2xx only after that.
    ///
    /// # Errors
    /// `Refused` for a replay and for what the store says.
    pub async fn accept(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Accepted, Refused> {
        let answer = accept(self.store.records(), &self.verified, jobs).await;
        answer.map_err(Refused::Store)?.map_err(Refused::Request)
    }
}

/// The answer to a request that is not taken.
#[derive(Debug)]
pub enum Refused {
    /// The request is not good: 401 and no word why.
    Request(Refusal),
    /// The store could not take it: 503, or 500 where another try will not help.
    Store(Error),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Request(why) => {
                tracing::warn!("webhook refused: {}", why.id());
                StatusCode::UNAUTHORIZED.into_response()
            }
            Self::Store(error) => {
                tracing::warn!(%error, "webhook not taken");
                match error.is_retryable() {
                    true => (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")])
                        .into_response(),
                    false => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                }
            }
        }
    }
}

impl<S> FromRequest<S> for Signed
where
    Receiver: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let Receiver { verifier, store } = Receiver::from_ref(state);
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, verifier.longest_body()).await;
        let body = body.map_err(|_| Refused::Request(Refusal::TooLarge))?;
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let verified = verifier.verify(headers, &body).map_err(Refused::Request)?;
        Ok(Self { verified, body, store })
    }
}
