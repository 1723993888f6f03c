//! What a receiver takes and refuses before it asks any store.

use std::time::Duration;

use leasehold::webhook::{Refusal, Scheme, Signer, Verifier};

use crate::signing::{keys, known};
use crate::{Told, pure};

pure![
    known_answers_are_taken_under_either_key,
    every_flipped_bit_is_refused,
    only_the_original_bytes_pass,
    any_one_good_signature_is_enough,
    the_window_is_symmetric_and_includes_its_ends,
    odd_times_are_refused,
    doubled_and_missing_headers_are_refused,
    a_text_cut_elsewhere_is_refused,
    sizes_are_judged_first,
    a_late_retry_is_signed_anew,
];

const AT: u64 = 1_700_000_000;

type Headers = Vec<(String, Vec<u8>)>;

fn verifier(scheme: &Scheme) -> Verifier {
    Verifier::new(scheme.clone(), keys(&[0]))
}

fn signed(scheme: &Scheme, at: u64, body: &[u8]) -> Headers {
    let made = Signer::new(scheme.clone(), keys(&[0])).sign_at("evt_1", at, body);
    made.expect("signed").into_iter().map(|(name, value)| (name, value.into_bytes())).collect()
}

/// Sets a header, given by the end of its name.
fn set(headers: &Headers, end: &str, value: impl AsRef<[u8]>) -> Headers {
    let mut headers = headers.clone();
    let header = headers.iter_mut().find(|(name, _)| name.ends_with(end)).expect("the header");
    header.1 = value.as_ref().to_vec();
    headers
}

fn judge(scheme: &Scheme, headers: &Headers, body: &[u8]) -> Option<Refusal> {
    verifier(scheme).verify_at(AT, headers, body).err()
}

fn both() -> [Scheme; 2] {
    [Scheme::euterpe(), Scheme::standard()]
}

/// Proves: WH-1, WH-2
fn known_answers_are_taken_under_either_key() -> Told {
    for vector in known().vectors {
        for (scheme, key) in both().into_iter().flat_map(|s| [(s.clone(), 0), (s, 1)]) {
            let verifier = Verifier::new(scheme.clone(), keys(&[key]));
            for sent in [&[0, 1][..], &[1, 0]] {
                let headers = vector.headers(&scheme, sent);
                let verified = verifier.verify_at(vector.timestamp, &headers, &vector.body())?;
                assert_eq!(verified.event_id(), vector.event_id, "{}", vector.name);
            }
            let other = vector.headers(&scheme, &[1 - key]);
            let refused = verifier.verify_at(vector.timestamp, &other, &vector.body()).err();
            assert_eq!(refused, Some(Refusal::BadSignature), "{}", vector.name);
        }
    }
    Ok(())
}

/// Proves: WH-1, WH-2
fn every_flipped_bit_is_refused() -> Told {
    let body = br#"{"status":"succeeded"}"#;
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        assert_eq!(judge(&scheme, &headers, body), None);
        for bit in 0..body.len() * 8 {
            let mut other = body.to_vec();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(judge(&scheme, &headers, &other), Some(Refusal::BadSignature), "{bit}");
        }
        // The event's id is signed by one form only; see `Scheme`.
        let unsigned = if scheme == Scheme::euterpe() { "-event-id" } else { "-none" };
        for (at, (name, value)) in headers.iter().enumerate() {
            if name.ends_with(unsigned) {
                continue;
            }
            for bit in 0..value.len() * 8 {
                let mut other = headers.clone();
                other[at].1[bit / 8] ^= 1 << (bit % 8);
                assert!(judge(&scheme, &other, body).is_some(), "{name}, bit {bit}");
            }
        }
        let secret = [5_u8; 32];
        for bit in 0..256 {
            let mut other = secret;
            other[bit / 8] ^= 1 << (bit % 8);
            let sign = leasehold::webhook::Key::new(secret)?;
            let headers = Signer::new(scheme.clone(), sign).sign_at("evt_1", AT, body)?;
            let verifier = Verifier::new(scheme.clone(), leasehold::webhook::Key::new(other)?);
            let refused = verifier.verify_at(AT, &headers, body).err();
            assert_eq!(refused, Some(Refusal::BadSignature), "key bit {bit}");
        }
    }
    Ok(())
}

/// Proves: WH-2
fn only_the_original_bytes_pass() -> Told {
    let body = b"{\"a\": 1,\r\n \"b\":2}";
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        assert_eq!(judge(&scheme, &headers, body), None);
        let others: [&[u8]; 6] = [
            b"\x1f\x8b\x08\0\0\0\0\0\0\xffpacked",
            b"{\"a\":1,\"b\":2}",
            b"{\"a\": 1,\n \"b\":2}",
            b"\xef\xbb\xbf{\"a\": 1,\r\n \"b\":2}",
            b"{\"a\": 1,\r\n \"b\":2}\xff",
            b"",
        ];
        for other in others {
            assert_eq!(judge(&scheme, &headers, other), Some(Refusal::BadSignature));
        }
        for odd in [b"".as_slice(), b"\x00\xff\xfe", b"no JSON"] {
            assert_eq!(judge(&scheme, &signed(&scheme, AT, odd), odd), None);
        }
    }
    Ok(())
}

/// Proves: WH-2
fn any_one_good_signature_is_enough() -> Told {
    let body = b"{}";
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        let good = String::from_utf8(headers[0].1.clone())?;
        let (between, bad) = match scheme == Scheme::euterpe() {
            true => (",", "0".repeat(64)),
            false => (" ", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned()),
        };
        let with = |value: String| judge(&scheme, &set(&headers, "-signature", value), body);
        let taken = [
            format!("{good}{between}{bad}"),
            format!("{bad}{between}{good}"),
            format!("v9,{good}{between}v2=abc{between}{good}"),
            format!("{between}{between} \t{good}\t{between}{between}"),
            format!("{}{good}", format!("{bad}{between}").repeat(15)),
        ];
        for value in taken {
            assert_eq!(with(value.clone()), None, "{value}");
        }
        let refused = [
            format!("{}{good}", format!("{bad}{between}").repeat(50)),
            good.to_uppercase(),
            format!("v1={good}"),
            good.trim_end_matches('=').replace("v1,", "v2,") + "0",
            between.to_owned(),
            good[..good.len() - 2].to_owned(),
        ];
        for value in refused {
            assert_eq!(with(value.clone()), Some(Refusal::BadSignature), "{value}");
        }
        let wide = "é".repeat(good.len() / 2);
        assert_eq!(with(wide), Some(Refusal::MalformedHeader));
        let mut lines = set(&headers, "-signature", &bad);
        lines.push(headers[0].clone());
        assert_eq!(judge(&scheme, &lines, body), None, "one good line of two");
    }
    Ok(())
}

/// Proves: WH-2
fn the_window_is_symmetric_and_includes_its_ends() -> Told {
    let body = b"{}";
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        let cases = [(-301, false), (-300, true), (0, true), (300, true), (301, false)];
        for (offset, fits) in cases {
            let now = AT.checked_add_signed(offset).expect("a time");
            let refused = verifier(&scheme).verify_at(now, &headers, body).err();
            assert_eq!(refused, (!fits).then_some(Refusal::Stale), "{offset}");
        }
        let narrow = verifier(&scheme).tolerance(Duration::from_millis(1_900));
        assert!(narrow.verify_at(AT + 1, &headers, body).is_ok());
        assert!(narrow.verify_at(AT + 2, &headers, body).is_err());
        assert!(narrow.nonce_ttl() >= Duration::from_secs(2));
        assert!(verifier(&scheme).nonce_ttl() >= Duration::from_secs(600));
    }
    Ok(())
}

/// Proves: WH-2, WH-5
fn odd_times_are_refused() -> Told {
    let body = b"{}";
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        let odd = ["-1", "+1700000000", "1e9", "1700000000.0", "", " 1700000000", "0x6553f100"];
        let long = "9".repeat(20);
        for value in odd.into_iter().chain([long.as_str()]) {
            let refused = judge(&scheme, &set(&headers, "-timestamp", value), body);
            assert_eq!(refused, Some(Refusal::MalformedHeader), "{value:?}");
        }
        for at in [AT * 1_000, 1 << 63, 0] {
            let refused = judge(&scheme, &signed(&scheme, at, body), body);
            assert_eq!(refused, Some(Refusal::Stale), "{at}");
        }
    }
    Ok(())
}

/// Proves: WH-2
fn doubled_and_missing_headers_are_refused() -> Told {
    let body = b"{}";
    for scheme in both() {
        let headers = signed(&scheme, AT, body);
        for at in 0..headers.len() {
            let mut fewer = headers.clone();
            let (name, value) = fewer.remove(at);
            assert_eq!(judge(&scheme, &fewer, body), Some(Refusal::MissingHeader), "{name}");
            if name.ends_with("-signature") {
                continue;
            }
            let mut more = headers.clone();
            more.push((name.to_uppercase(), value));
            assert_eq!(judge(&scheme, &more, body), Some(Refusal::MalformedHeader), "{name}");
        }
        let ids = [String::new(), "a b".to_owned(), "x".repeat(256)];
        for id in ids {
            let refused = judge(&scheme, &set(&headers, "-id", &id), body);
            assert_eq!(refused, Some(Refusal::MalformedHeader), "{id:?}");
        }
    }
    Ok(())
}

/// A nonce or an id that holds the sign between the parts could share its signature with another
/// body.
///
/// Proves: WH-2
fn a_text_cut_elsewhere_is_refused() -> Told {
    let scheme = Scheme::euterpe();
    let headers = signed(&scheme, AT, b"b.c");
    let nonce = headers.iter().find(|(name, _)| name.ends_with("-nonce")).expect("a nonce");
    let longer = [nonce.1.as_slice(), b".b"].concat();
    let moved = set(&headers, "-nonce", &longer);
    assert_eq!(judge(&scheme, &moved, b"c"), Some(Refusal::MalformedHeader));

    let scheme = Scheme::standard();
    let signer = Signer::new(scheme.clone(), keys(&[0]));
    let headers = signer.sign_at("a.5", AT, b"x")?;
    let refused = verifier(&scheme).verify_at(AT, &headers, b"x").err();
    assert_eq!(refused, Some(Refusal::MalformedHeader));
    Ok(())
}

/// Proves: WH-2
fn sizes_are_judged_first() -> Told {
    for scheme in both() {
        let headers = signed(&scheme, AT, b"12345");
        let small = verifier(&scheme).body_bytes_max(4);
        assert_eq!(small.verify_at(AT, &headers, b"12345").err(), Some(Refusal::TooLarge));
        let huge = set(&headers, "-signature", "0".repeat(1 << 20));
        assert_eq!(judge(&scheme, &huge, b"12345"), Some(Refusal::TooLarge));
        let mut many = headers.clone();
        many.extend(std::iter::repeat_n(headers[0].clone(), 1_000));
        assert_eq!(judge(&scheme, &many, b"12345"), Some(Refusal::TooLarge));
    }
    Ok(())
}

/// Proves: WH-5
fn a_late_retry_is_signed_anew() -> Told {
    let body = b"{}";
    for scheme in both() {
        let (first, later) = (signed(&scheme, AT, body), signed(&scheme, AT + 6 * 3600, body));
        let now = AT + 6 * 3600 + 1;
        let old = verifier(&scheme).verify_at(now, &first, body).err();
        assert_eq!(old, Some(Refusal::Stale));
        assert_eq!(verifier(&scheme).verify_at(now, &later, body)?.event_id(), "evt_1");
    }
    Ok(())
}
