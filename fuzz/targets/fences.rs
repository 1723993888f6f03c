//! Feeds bytes to fences: what is read lies in range, and its token orders as epoch, then version.
#![no_main]

use leasehold_core::{ClaimVersion, Epoch, Fence};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(fence) = serde_json::from_slice::<Fence>(bytes) {
        assert!((ClaimVersion::ZERO..=ClaimVersion::MAX).contains(&fence.version()));
        assert!(fence.epoch() <= Epoch::MAX);
        let token = fence.fencing_token();
        assert_eq!(token >> 48, i64::from(fence.epoch().get()));
        assert_eq!(token & ((1 << 48) - 1), fence.version().get());
        let written = serde_json::to_string(&fence).expect("written");
        assert_eq!(serde_json::from_str::<Fence>(&written).expect("read"), fence);
    }
    if let Ok(number) = bytes.try_into().map(i64::from_le_bytes) {
        assert_eq!(ClaimVersion::new(number).is_ok(), (0..1 << 48).contains(&number));
        assert_eq!(Epoch::new(number).is_ok(), (0..=32_767).contains(&number));
    }
});
