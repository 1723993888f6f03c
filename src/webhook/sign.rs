//! Owns the sender's half of a signature: the headers of one attempt.

use std::fmt::Debug;

use hmac::Mac;
use leasehold_core::Result;

use super::key::Keys;
use super::scheme::{Scheme, Told, hex};

/// Signs attempts with every key that counts.
///
/// Each attempt is signed anew, with its own time and nonce and the event's same id.
///
/// ```
/// use leasehold::webhook::{Key, Scheme, Signer};
///
/// let signer = Signer::new(Scheme::euterpe(), Key::new(*b"an example, 32 bytes long, no key")?);
/// let headers = signer.sign_at("event-7", 1_700_000_000, b"{}")?;
/// assert_eq!(headers[1], ("x-euterpe-timestamp".to_owned(), "1700000000".to_owned()));
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signer {
    scheme: Scheme,
    keys: Keys,
}

impl Signer {
    /// Begins a signer.
    pub fn new(scheme: Scheme, keys: impl Into<Keys>) -> Self {
        Self { scheme, keys: keys.into() }
    }

    /// Gives the headers of an attempt made now, by this machine's clock, with a fresh nonce.
    ///
    /// # Errors
    /// `Invalid` for a machine whose clock stands before 1970.
    pub fn sign(&self, event_id: &str, body: &[u8]) -> Result<Vec<(String, String)>> {
        self.sign_at(event_id, super::now()?, body)
    }

    /// Gives the headers of an attempt made at a time in Unix seconds, with a fresh nonce.
    ///
    /// # Errors
    /// None that a key of allowed length meets.
    pub fn sign_at(
        &self,
        event_id: &str,
        unix_seconds: u64,
        body: &[u8],
    ) -> Result<Vec<(String, String)>> {
        self.sign_with(event_id, unix_seconds, rand::random(), body)
    }

    /// Gives the headers of an attempt with a given nonce; the same nonce again is a replay.
    ///
    /// # Errors
    /// None that a key of allowed length meets.
    pub fn sign_with(
        &self,
        event_id: &str,
        unix_seconds: u64,
        nonce: [u8; 16],
        body: &[u8],
    ) -> Result<Vec<(String, String)>> {
        let (timestamp, nonce) = (unix_seconds.to_string(), hex(&nonce));
        let told = Told { id: event_id, timestamp: &timestamp, nonce: &nonce };
        let macs = self.keys.macs(&self.scheme.signed(&told, body))?;
        let signatures = macs.into_iter().map(|mac| mac.finalize().into_bytes().to_vec());
        let mut headers = vec![
            (self.scheme.signature_header(), self.scheme.write(signatures)),
            (self.scheme.timestamp_header(), timestamp.clone()),
            (self.scheme.id_header(), event_id.to_owned()),
        ];
        headers.extend(self.scheme.nonce_header().map(|name| (name, nonce.clone())));
        Ok(headers)
    }
}
