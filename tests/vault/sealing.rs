//! What a sealed secret is bound to, against a known answer and every way to alter or move one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leasehold::vault::{Binding, KekId, KeyRing, Sealed, VaultError};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{Told, pure, runtime};

pure![
    a_known_answer_is_opened,
    each_part_of_the_binding_is_bound,
    parts_that_join_alike_are_told_apart,
    every_altered_bit_and_every_cut_is_refused,
    ciphertexts_and_keys_cannot_be_swapped,
    the_binding_of_the_secret_does_not_hold_the_keys_id,
    causes_are_told_apart,
    nothing_secret_is_shown,
    keys_come_from_the_environment_or_from_guarded_files,
];

pub(crate) fn id(id: &str) -> KekId {
    KekId::new(id).expect("an id")
}

pub(crate) fn ring(active: &str) -> KeyRing {
    KeyRing::new(id(active), [active.as_bytes()[0]; 32]).expect("a key")
}

pub(crate) fn binding() -> Binding {
    Binding::new("job-7", "requester-1", 3)
}

fn seal(keys: &KeyRing, binding: &Binding, plain: &[u8]) -> Sealed {
    runtime().block_on(Sealed::seal(keys, binding, plain)).expect("sealed")
}

fn open(keys: &KeyRing, sealed: &Sealed, binding: &Binding) -> Result<Vec<u8>, VaultError> {
    let opened = runtime().block_on(sealed.open(keys, binding));
    opened.map(|plain| plain.expose_secret().to_vec())
}

fn unauthentic(opened: Result<Vec<u8>, VaultError>) -> bool {
    matches!(opened, Err(VaultError::Authentication))
}

/// Proves: ENC-1, ENC-2
fn a_known_answer_is_opened() -> Told {
    let known: Value = serde_json::from_str(include_str!("known.json"))?;
    let bytes = |name: &str| STANDARD.decode(known[name].as_str().expect("text"));
    let keys = KeyRing::new(id("2026-11"), bytes("kek")?)?;
    let sealed: Sealed = serde_json::from_value(known["sealed"].clone())?;
    assert_eq!(open(&keys, &sealed, &binding())?, bytes("plain")?);
    Ok(())
}

/// Proves: ENC-2
fn each_part_of_the_binding_is_bound() -> Told {
    let keys = ring("a");
    let sealed = seal(&keys, &binding(), b"secret");
    assert_eq!(open(&keys, &sealed, &binding())?, b"secret");
    let others = [
        Binding::new("job-8", "requester-1", 3),
        Binding::new("job-7", "requester-2", 3),
        Binding::new("job-7", "requester-1", 2),
        Binding::new("job-7", "requester-1", 4),
        Binding::new("requester-1", "job-7", 3),
        binding().field("webhook_secret"),
        Binding::new("", "", 0),
    ];
    for other in others {
        assert!(unauthentic(open(&keys, &sealed, &other)), "{other:?}");
    }
    Ok(())
}

/// Proves: ENC-2
fn parts_that_join_alike_are_told_apart() -> Told {
    let keys = ring("a");
    let pairs =
        [("a:b", "c"), ("a", "b:c"), ("a:b:c", ""), ("", "a:b:c"), ("ab", ":c"), ("a\0", "b")];
    for (at, (job, requester)) in pairs.iter().enumerate() {
        let sealed = seal(&keys, &Binding::new(*job, *requester, 1), b"secret");
        for (other, (job, requester)) in pairs.iter().enumerate() {
            let opened = open(&keys, &sealed, &Binding::new(*job, *requester, 1));
            assert_eq!(opened.is_ok(), at == other, "{at} as {other}");
        }
    }
    Ok(())
}

/// A sealed secret with one member replaced.
fn with(sealed: &Sealed, member: &str, value: Value) -> Result<Sealed, serde_json::Error> {
    let mut whole = serde_json::to_value(sealed)?;
    whole[member] = value;
    serde_json::from_value(whole)
}

const CIPHERTEXT: &str = "storage_creds_encrypted";
const WRAPPED: &str = "storage_creds_dek_wrapped";

fn bytes_of(sealed: &Sealed, member: &str) -> Vec<u8> {
    let whole = serde_json::to_value(sealed).expect("JSON");
    STANDARD.decode(whole[member].as_str().expect("text")).expect("base64")
}

/// Proves: ENC-2
fn every_altered_bit_and_every_cut_is_refused() -> Told {
    let keys = ring("a");
    let sealed = seal(&keys, &binding(), b"secret");
    for member in [CIPHERTEXT, WRAPPED] {
        let bytes = bytes_of(&sealed, member);
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let other = with(&sealed, member, json!(STANDARD.encode(other)))?;
            assert!(unauthentic(open(&keys, &other, &binding())), "{member} bit {bit}");
        }
        for length in 0..bytes.len() {
            let other = with(&sealed, member, json!(STANDARD.encode(&bytes[..length])))?;
            let refused = open(&keys, &other, &binding()).expect_err("refused");
            let fits = matches!(refused, VaultError::Authentication | VaultError::Malformed(_));
            assert!(fits, "{member} cut to {length}: {refused}");
        }
        for odd in [json!(""), json!("no base64!"), json!("cGxhaW4="), json!(null)] {
            let opened = with(&sealed, member, odd.clone()).map(|it| open(&keys, &it, &binding()));
            assert!(!matches!(opened, Ok(Ok(_))), "{odd}");
        }
    }
    for version in [0, 2, -1] {
        let other = with(&sealed, "storage_creds_encryption_version", json!(version))?;
        assert!(matches!(open(&keys, &other, &binding()), Err(VaultError::Malformed(_))));
    }
    Ok(())
}

/// Proves: ENC-2
fn ciphertexts_and_keys_cannot_be_swapped() -> Told {
    let keys = ring("a");
    let one = seal(&keys, &binding(), b"one");
    // Another row, another column, another tenant, and the older version of the same row.
    let others = [
        Binding::new("job-8", "requester-1", 3),
        binding().field("webhook_secret"),
        Binding::new("job-7", "requester-2", 3),
        Binding::new("job-7", "requester-1", 2),
    ];
    for other in others {
        let two = seal(&keys, &other, b"two");
        assert!(unauthentic(open(&keys, &two, &binding())), "the whole of it");
        for member in [CIPHERTEXT, WRAPPED] {
            let moved = with(&one, member, json!(STANDARD.encode(bytes_of(&two, member))))?;
            assert!(unauthentic(open(&keys, &moved, &binding())), "{member}");
        }
    }
    // Even under the very same binding no secret has another's data key.
    let again = seal(&keys, &binding(), b"one");
    assert_ne!(bytes_of(&one, CIPHERTEXT), bytes_of(&again, CIPHERTEXT));
    let moved = with(&one, WRAPPED, json!(STANDARD.encode(bytes_of(&again, WRAPPED))))?;
    assert!(unauthentic(open(&keys, &moved, &binding())));
    Ok(())
}

/// Proves: ENC-2, ENC-3
fn the_binding_of_the_secret_does_not_hold_the_keys_id() -> Told {
    let old = seal(&ring("a"), &binding(), b"secret");
    let both = ring("b").and(id("a"), [b'a'; 32])?;
    let new = runtime().block_on(old.rewrap(&both, &binding()))?;
    assert_eq!(new.kek()?, id("b"));
    assert_eq!(bytes_of(&old, CIPHERTEXT), bytes_of(&new, CIPHERTEXT), "only its key is new");
    assert_eq!(open(&ring("b"), &new, &binding())?, b"secret");
    // The wrapping is bound to the id: the same key bytes under another name do not open it.
    let renamed = with(&new, "storage_creds_kek_id", json!("c"))?;
    let alike = KeyRing::new(id("c"), [b'b'; 32])?;
    assert!(unauthentic(open(&alike, &renamed, &binding())));
    // What is not genuine is never wrapped anew.
    let foreign = Binding::new("job-8", "requester-1", 3);
    let refused = runtime().block_on(old.rewrap(&both, &foreign));
    assert!(matches!(refused, Err(VaultError::Authentication)));
    Ok(())
}

/// Proves: ENC-2, ENC-3
fn causes_are_told_apart() -> Told {
    let sealed = seal(&ring("a"), &binding(), b"secret");
    let unknown = open(&ring("b"), &sealed, &binding()).expect_err("refused");
    assert!(matches!(&unknown, VaultError::UnknownKey(kek) if *kek == id("a")), "{unknown}");
    let other_bytes = KeyRing::new(id("a"), [9; 32])?;
    assert!(unauthentic(open(&other_bytes, &sealed, &binding())));
    for error in [unknown, VaultError::Authentication, VaultError::Malformed("x")] {
        assert!(!error.failure().is_retryable(), "no attempts are burnt: {error}");
    }
    Ok(())
}

/// Proves: ENC-3, SEC-2
fn nothing_secret_is_shown() -> Told {
    let keys = KeyRing::new(id("a"), *b"a key of which nothing is shown!")?;
    let sealed = seal(&keys, &binding(), b"plain text");
    let opened = runtime().block_on(sealed.open(&keys, &binding()))?;
    let shown = format!("{keys:?} {sealed:?} {opened:?}");
    let hidden = ["a key of", "plain text", "97, 32", "112, 108"];
    for text in hidden {
        assert!(!shown.contains(text), "{shown}");
    }
    assert!(!shown.contains(&STANDARD.encode(bytes_of(&sealed, CIPHERTEXT))), "{shown}");
    Ok(())
}

/// Proves: ENC-3, SEC-1
fn keys_come_from_the_environment_or_from_guarded_files() -> Told {
    use std::os::unix::fs::PermissionsExt;
    let place = std::env::temp_dir().join(format!("leasehold-keys-{}", std::process::id()));
    std::fs::create_dir_all(place.join("..data"))?;
    let write = |name: &str, bytes: &[u8], mode: u32| {
        let path = place.join(name);
        std::fs::write(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
    };
    write("a", &[b'a'; 32], 0o400)?;
    write("b", format!("{}\n", STANDARD.encode([b'b'; 32])).as_bytes(), 0o640)?;
    let keys = KeyRing::from_folder(&place, id("b"))?;
    let sealed = seal(&ring("a"), &binding(), b"secret");
    assert_eq!(open(&keys, &sealed, &binding())?, b"secret");
    assert_eq!(seal(&keys, &binding(), b"x").kek()?, id("b"));
    assert!(KeyRing::from_folder(&place, id("c")).is_err(), "the key that seals is not there");
    for mode in [0o644, 0o604, 0o660, 0o620, 0o777] {
        write("b", &[b'b'; 32], mode)?;
        let refused = KeyRing::from_folder(&place, id("b")).expect_err("refused").to_string();
        assert!(refused.contains("mode") && !refused.contains("bbbb"), "{refused}");
    }
    write("b", b"too short", 0o400)?;
    assert!(KeyRing::from_folder(&place, id("a")).is_err());
    std::fs::remove_dir_all(&place)?;

    let refused = KeyRing::from_env("LEASEHOLD_NO_SUCH_KEYS").expect_err("refused").to_string();
    assert!(refused.contains("LEASEHOLD_NO_SUCH_KEYS"), "{refused}");
    // The environment of this very run, set by nobody here, holds no keys either.
    assert!(KeyRing::from_env("PATH").is_err());
    for bad in ["", "a b", "a/b", &"x".repeat(65)] {
        assert!(KekId::new(bad).is_err(), "{bad:?}");
    }
    Ok(())
}
