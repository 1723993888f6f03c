//! Feeds bytes to the payload validator: it never panics, accepts only what another reader accepts
//! too, and keeps the text as it was.
#![no_main]

use leasehold_core::{Json, RequestHash};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(json) = Json::parse_bytes(bytes) {
        assert_eq!(json.as_str().as_bytes(), bytes, "the text was changed");
        let other: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(bytes);
        assert!(other.is_ok(), "another reader refuses {:?}", json.as_str());
        assert_eq!(Json::parse(json.as_str()).expect("accepted before"), json);
        // Blanks around a document are no part of what it asks for.
        if let Ok(spaced) = Json::parse(format!(" {}\n", json.as_str())) {
            let hash = |json| RequestHash::of_job("kind", "queue", json);
            assert_eq!(hash(&json), hash(&spaced));
        }
    }
});
