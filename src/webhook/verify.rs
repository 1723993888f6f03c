//! Owns the receiver's half of a signature: sizes, then the signature, then its age. Takes bytes and
//! headers, never a parsed body, and touches no store; what it found valid says what a store must
//! keep.

use std::time::Duration;

use hmac::Mac;
use leasehold_core::{
    Admission, Admitted, ErrorKind, IdempotencyKey, Json, Once, RequestHash, Result, Scope,
};
use sha2::{Digest, Sha256};

use super::key::Keys;
use super::refusal::Refusal;
use super::scheme::{Form, Scheme, Told, hex};

/// The longest header value that is looked at, in bytes.
const HEADER_BYTES_MAX: usize = 4096;
/// How many signatures of a request are looked at.
const SIGNATURES_MAX: usize = 16;
/// The longest event id and nonce, in bytes.
const ID_BYTES_MAX: usize = 255;
/// Nonces are kept this much longer than twice the window, against clocks that drift apart.
const MARGIN: Duration = Duration::from_secs(60);

/// Judges signed requests.
///
/// | What | Unless set |
/// |---|---|
/// | [`tolerance`](Verifier::tolerance) | 5 min before and after, both ends included |
/// | [`body_bytes_max`](Verifier::body_bytes_max) | 1 MiB |
/// | [`event_ttl`](Verifier::event_ttl) | 31 days: an event's id is known that long |
/// | [`sender`](Verifier::sender) | `webhook`: whose nonces and ids these are |
///
/// ```
/// use leasehold::webhook::{Key, Refusal, Scheme, Signer, Verifier};
///
/// let key = || Key::new(*b"an example, 32 bytes long, no key");
/// let headers = Signer::new(Scheme::euterpe(), key()?).sign("event-7", b"{}")?;
/// let verifier = Verifier::new(Scheme::euterpe(), key()?);
/// assert_eq!(verifier.verify(&headers, b"{}")?.event_id(), "event-7");
/// assert_eq!(verifier.verify(&headers, b"{ }").err(), Some(Refusal::BadSignature));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Verifier {
    scheme: Scheme,
    keys: Keys,
    tolerance: Duration,
    body_bytes_max: usize,
    event_ttl: Duration,
    sender: String,
}

impl Verifier {
    /// Begins a verifier.
    pub fn new(scheme: Scheme, keys: impl Into<Keys>) -> Self {
        Self {
            scheme,
            keys: keys.into(),
            tolerance: Duration::from_secs(300),
            body_bytes_max: 1 << 20,
            event_ttl: Duration::from_secs(31 * 24 * 3600),
            sender: "webhook".to_owned(),
        }
    }

    /// Sets how far the time of a request may lie from ours, either way; whole seconds count.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = Duration::from_secs(tolerance.as_secs());
        self
    }

    /// Sets the longest body.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Sets how long an event's id is known; never less than a nonce is.
    #[must_use]
    pub fn event_ttl(mut self, ttl: Duration) -> Self {
        self.event_ttl = ttl;
        self
    }

    /// Sets whose requests these are; two senders' event ids do not meet.
    ///
    /// # Errors
    /// `Invalid` as a scope, with room for 6 more bytes.
    pub fn sender(mut self, sender: &str) -> Result<Self> {
        Scope::new(format!("{sender}/event"))?;
        sender.clone_into(&mut self.sender);
        Ok(self)
    }

    /// The longest body that is looked at.
    #[must_use]
    pub fn longest_body(&self) -> usize {
        self.body_bytes_max
    }

    /// How long a nonce is kept: twice the window and a minute.
    #[must_use]
    pub fn nonce_ttl(&self) -> Duration {
        (self.tolerance * 2).saturating_add(MARGIN)
    }

    /// Judges a request by this machine's clock. The body is the bytes as they came.
    ///
    /// # Errors
    /// The first reason that holds, in the order sizes, headers, signature, age.
    pub fn verify<N: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        headers: impl IntoIterator<Item = impl std::borrow::Borrow<(N, V)>>,
        body: &[u8],
    ) -> Result<Verified, Refusal> {
        self.verify_at(super::now().map_err(|_| Refusal::Stale)?, headers, body)
    }

    /// Judges a request as of a time in Unix seconds.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub fn verify_at<N: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        unix_seconds: u64,
        headers: impl IntoIterator<Item = impl std::borrow::Borrow<(N, V)>>,
        body: &[u8],
    ) -> Result<Verified, Refusal> {
        if body.len() > self.body_bytes_max {
            return Err(Refusal::TooLarge);
        }
        let read = Read::of(&self.scheme, headers)?;
        let told = read.told()?;
        let pieces = read.signatures.iter().flat_map(|value| self.scheme.cut(value));
        let offered: Vec<_> =
            pieces.take(SIGNATURES_MAX).filter_map(|piece| self.scheme.read(piece)).collect();
        let macs = self.keys.macs(&self.scheme.signed(&told, body));
        let macs = macs.map_err(|_| Refusal::BadSignature)?;
        let fits = offered.iter().fold(false, |fits, bytes| {
            macs.iter().fold(fits, |fits, mac| fits | mac.clone().verify_slice(bytes).is_ok())
        });
        if !fits {
            return Err(Refusal::BadSignature);
        }
        let at: u64 = told.timestamp.parse().map_err(|_| Refusal::Stale)?;
        if at.abs_diff(unix_seconds) > self.tolerance.as_secs() {
            return Err(Refusal::Stale);
        }
        Ok(self.verified(&told, at, body))
    }

    fn verified(&self, told: &Told<'_>, at: u64, body: &[u8]) -> Verified {
        // A form without a nonce is known again by its event's id alone: an honest retry within the same
        // second looks as a replay does.
        let nonce = match self.scheme.form {
            Form::Euterpe => told.nonce.to_owned(),
            Form::Standard => hex(&rand::random::<[u8; 16]>()),
        };
        Verified {
            event_id: told.id.to_owned(),
            signed_at: at,
            nonce: Sha256::digest(&nonce).into(),
            id: Sha256::digest(told.id).into(),
            body: Sha256::digest(body).into(),
            nonce_ttl: self.nonce_ttl(),
            event_ttl: self.event_ttl.max(self.nonce_ttl()),
            sender: self.sender.clone(),
        }
    }
}

/// A request whose signature and age are good. It may still be a replay: only
/// [`Verified::admission`] tells, in the transaction that takes it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Verified {
    event_id: String,
    signed_at: u64,
    nonce: [u8; 32],
    id: [u8; 32],
    body: [u8; 32],
    nonce_ttl: Duration,
    event_ttl: Duration,
    sender: String,
}

impl Verified {
    /// The id of the event, the same on every attempt.
    #[must_use]
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// When this attempt was signed, in Unix seconds, by the sender's clock.
    #[must_use]
    pub fn signed_at(&self) -> u64 {
        self.signed_at
    }

    /// What must be new for the request to count: its nonce, then its event's id. Add the jobs that it
    /// asks for, give it to `Records::admit` or to `admit` on your own transaction, and read the
    /// answer by [`accepted`].
    ///
    /// # Errors
    /// None that a verified request meets.
    pub fn admission(&self) -> Result<Admission> {
        let once = |what: &str, key: &[u8; 32], hash: &[u8; 32], ttl| {
            let scope = Scope::new(format!("{}/{what}", self.sender))?;
            let key = IdempotencyKey::new(hex(key))?;
            Ok(Once::new(scope, key, RequestHash::from_bytes(hash)?, Json::null()).ttl(ttl))
        };
        let nonce = once("nonce", &self.nonce, &self.nonce, self.nonce_ttl)?;
        let event = once("event", &self.id, &self.body, self.event_ttl)?;
        Ok(Admission::new([nonce, event]))
    }
}

/// What became of a verified request.
#[derive(Clone, Debug)]
#[must_use]
pub enum Accepted {
    /// It is taken, with its jobs.
    New(Vec<leasehold_core::Enqueued>),
    /// Its event was taken before; the sender did not hear of it. Answer 2xx and do nothing.
    Again,
}

/// Reads the answer to [`Verified::admission`].
///
/// # Errors
/// As `Records::admit`, but for the `Conflict` of an event's id with another body, which is
/// `Ok(Err(OtherBody))`, as a used nonce is `Ok(Err(Replayed))`.
pub fn accepted(answer: Result<Admitted>) -> Result<Result<Accepted, Refusal>> {
    match answer {
        Ok(Admitted::New(jobs)) => Ok(Ok(Accepted::New(jobs))),
        Ok(Admitted::Known { at: 0, .. }) => Ok(Err(Refusal::Replayed)),
        Ok(Admitted::Known { .. }) => Ok(Ok(Accepted::Again)),
        Err(error) if error.kind() == ErrorKind::Conflict && error.operation() == "once" => {
            Ok(Err(Refusal::OtherBody))
        }
        Err(error) => Err(error),
    }
}

/// The headers that count, each within its bounds.
struct Read {
    signatures: Vec<String>,
    timestamp: Option<String>,
    id: Option<String>,
    nonce: Option<String>,
    has_nonce: bool,
}

impl Read {
    fn of<N: AsRef<str>, V: AsRef<[u8]>>(
        scheme: &Scheme,
        headers: impl IntoIterator<Item = impl std::borrow::Borrow<(N, V)>>,
    ) -> Result<Self, Refusal> {
        let (signature, timestamp) = (scheme.signature_header(), scheme.timestamp_header());
        let (id, nonce) = (scheme.id_header(), scheme.nonce_header());
        let mut read = Self {
            signatures: Vec::new(),
            timestamp: None,
            id: None,
            nonce: None,
            has_nonce: nonce.is_some(),
        };
        for header in headers {
            let (name, value) = header.borrow();
            let is = |wanted: &str| name.as_ref().eq_ignore_ascii_case(wanted);
            let slot = if is(&signature) {
                None
            } else if is(&timestamp) {
                Some(&mut read.timestamp)
            } else if is(&id) {
                Some(&mut read.id)
            } else if nonce.as_deref().is_some_and(is) {
                Some(&mut read.nonce)
            } else {
                continue;
            };
            let value = value.as_ref();
            if value.len() > HEADER_BYTES_MAX || read.signatures.len() == SIGNATURES_MAX {
                return Err(Refusal::TooLarge);
            }
            let text = std::str::from_utf8(value).ok().filter(|text| text.is_ascii());
            let text = text.ok_or(Refusal::MalformedHeader)?.to_owned();
            match slot {
                None => read.signatures.push(text),
                Some(slot @ None) => *slot = Some(text),
                Some(Some(_)) => return Err(Refusal::MalformedHeader),
            }
        }
        Ok(read)
    }

    fn told(&self) -> Result<Told<'_>, Refusal> {
        let nonce = if self.has_nonce { self.nonce.as_deref() } else { Some("") };
        let (Some(timestamp), Some(id), Some(nonce), false) =
            (self.timestamp.as_deref(), self.id.as_deref(), nonce, self.signatures.is_empty())
        else {
            return Err(Refusal::MissingHeader);
        };
        let is_word = |text: &str| {
            (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
        };
        let is_time = (1..=19).contains(&timestamp.len())
            && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let nonce_fits = !self.has_nonce || is_word(nonce);
        // A point in a signed part that another follows would let two requests share a signature.
        let has_point = if self.has_nonce { nonce.contains('.') } else { id.contains('.') };
        match is_time && is_word(id) && nonce_fits && !has_point {
            true => Ok(Told { id, timestamp, nonce }),
            false => Err(Refusal::MalformedHeader),
        }
    }
}
