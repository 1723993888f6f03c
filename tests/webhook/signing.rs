//! What a sender signs, against known answers made by another program.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold::webhook::{Key, Keys, Scheme, Signer, Verifier};
use serde::Deserialize;

use crate::{Told, pure};

pure![
    signatures_are_the_known_ones,
    the_published_example_is_signed_and_verified,
    each_attempt_has_its_own_nonce,
    a_rotation_is_two_signatures_and_then_one,
    the_prefix_of_the_headers_can_be_set,
    secrets_are_never_shown,
];

#[derive(Deserialize)]
pub(crate) struct Known {
    keys: Vec<String>,
    published: Published,
    pub(crate) vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Published {
    secret: String,
    event_id: String,
    timestamp: u64,
    body: String,
    signature: String,
}

#[derive(Deserialize)]
pub(crate) struct Vector {
    pub(crate) name: String,
    body: String,
    repeated: usize,
    pub(crate) timestamp: u64,
    nonce: String,
    pub(crate) event_id: String,
    euterpe: Vec<String>,
    standard: Vec<String>,
}

impl Vector {
    pub(crate) fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.body).expect("base64").repeat(self.repeated)
    }

    fn nonce(&self) -> [u8; 16] {
        let byte = |at: usize| u8::from_str_radix(&self.nonce[2 * at..2 * at + 2], 16);
        std::array::from_fn(|at| byte(at).expect("hex"))
    }

    /// The headers as a sender with these keys has them, written by hand.
    pub(crate) fn headers(&self, scheme: &Scheme, keys: &[usize]) -> Vec<(String, String)> {
        let pick = |all: &[String], between: &str| {
            keys.iter().map(|key| all[*key].clone()).collect::<Vec<_>>().join(between)
        };
        let mut headers = if *scheme == Scheme::standard() {
            vec![
                ("webhook-signature", pick(&self.standard, " ")),
                ("webhook-id", self.event_id.clone()),
                ("webhook-timestamp", self.timestamp.to_string()),
            ]
        } else {
            vec![
                ("x-euterpe-signature", pick(&self.euterpe, ",")),
                ("x-euterpe-event-id", self.event_id.clone()),
                ("x-euterpe-timestamp", self.timestamp.to_string()),
                ("x-euterpe-nonce", self.nonce.clone()),
            ]
        };
        headers.drain(..).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

pub(crate) fn known() -> Known {
    serde_json::from_str(include_str!("signatures.json")).expect("the known answers")
}

/// The keys of the known answers, by number.
pub(crate) fn keys(numbers: &[usize]) -> Keys {
    let known = known();
    let key = |number: &usize| {
        Key::new(STANDARD.decode(&known.keys[*number]).expect("base64")).expect("a key")
    };
    let mut rest = numbers.iter();
    let first = Keys::from(key(rest.next().expect("a number")));
    rest.fold(first, |keys, number| keys.and(key(number)).expect("room"))
}

fn sorted(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.sort();
    headers
}

/// Proves: WH-1, WH-5
fn signatures_are_the_known_ones() -> Told {
    for vector in known().vectors {
        for scheme in [Scheme::euterpe(), Scheme::standard()] {
            for numbers in [&[0][..], &[1], &[0, 1], &[1, 0]] {
                let signer = Signer::new(scheme.clone(), keys(numbers));
                let (id, at, body) = (&vector.event_id, vector.timestamp, vector.body());
                let made = signer.sign_with(id, at, vector.nonce(), &body)?;
                let wanted = vector.headers(&scheme, numbers);
                assert_eq!(sorted(made), sorted(wanted), "{} {scheme:?}", vector.name);
            }
        }
    }
    Ok(())
}

/// Proves: WH-1
fn the_published_example_is_signed_and_verified() -> Told {
    let example = known().published;
    let key = || Key::standard(&example.secret);
    let (id, at, body) = (&example.event_id, example.timestamp, example.body.as_bytes());
    let headers = Signer::new(Scheme::standard(), key()?).sign_at(id, at, body)?;
    assert_eq!(headers[0], ("webhook-signature".to_owned(), example.signature.clone()));
    let verifier = Verifier::new(Scheme::standard(), key()?);
    assert_eq!(verifier.verify_at(at, &headers, body)?.event_id(), id);
    Ok(())
}

/// Proves: WH-5
fn each_attempt_has_its_own_nonce() -> Told {
    let signer = Signer::new(Scheme::euterpe(), keys(&[0]));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1_000 {
        let headers = signer.sign("evt_1", b"{}")?;
        let value = |name: &str| {
            let found = headers.iter().find(|(is, _)| is == name);
            found.map(|(_, value)| value.clone()).expect("the header")
        };
        assert_eq!(value("x-euterpe-event-id"), "evt_1");
        let nonce = value("x-euterpe-nonce");
        assert_eq!(nonce.len(), 32, "128 bits in hex");
        assert!(seen.insert(nonce));
    }
    Ok(())
}

/// Proves: WH-5, WH-2, SEC-2
fn a_rotation_is_two_signatures_and_then_one() -> Told {
    let body = b"{}";
    let steps: [(&[usize], &[usize], bool); 5] = [
        (&[0], &[0], true),
        (&[1, 0], &[0], true),
        (&[1, 0], &[1], true),
        (&[1], &[0, 1], true),
        (&[1], &[0], false),
    ];
    for scheme in [Scheme::euterpe(), Scheme::standard()] {
        for (signs, takes, fits) in steps {
            let headers = Signer::new(scheme.clone(), keys(signs)).sign("evt_1", body)?;
            let verified = Verifier::new(scheme.clone(), keys(takes)).verify(&headers, body);
            assert_eq!(verified.is_ok(), fits, "signed by {signs:?}, taken by {takes:?}");
        }
    }
    let full = keys(&[0, 1, 0, 1]);
    assert!(full.and(Key::new([7; 32])?).is_err(), "a fifth key");
    Ok(())
}

/// Proves: WH-1
fn the_prefix_of_the_headers_can_be_set() -> Told {
    let scheme = Scheme::euterpe().prefix("x-shop")?;
    let headers = Signer::new(scheme, keys(&[0])).sign("evt_1", b"{}")?;
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let wanted = ["x-shop-signature", "x-shop-timestamp", "x-shop-event-id", "x-shop-nonce"];
    assert_eq!(names, wanted);
    for bad in ["", "X-Shop", "x shop", "x\nshop", &"x".repeat(41)] {
        assert!(Scheme::euterpe().prefix(bad).is_err(), "{bad:?}");
    }
    Ok(())
}

/// Proves: WH-2, SEC-2
fn secrets_are_never_shown() -> Told {
    let text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let keys = Keys::from(Key::standard(text)?);
    let signer = Signer::new(Scheme::standard(), keys.clone());
    let shown =
        format!("{keys:?} {signer:?} {:?}", Verifier::new(Scheme::standard(), keys.clone()));
    assert!(!shown.contains("MfKQ") && !shown.contains("49, 242"), "{shown}");
    let short = format!("whsec_{}", STANDARD.encode([1; 23]));
    let long = format!("whsec_{}", STANDARD.encode([1; 65]));
    for bad in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_no base64!", &short, &long] {
        let error = Key::standard(bad).expect_err("refused");
        assert!(!error.to_string().contains(bad), "{error}");
    }
    assert!(Key::new([0; 15]).is_err() && Key::new([0; 257]).is_err());
    Ok(())
}
