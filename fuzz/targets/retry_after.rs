//! Feeds texts to the reader of `Retry-After`: it never panics, and whole seconds are those seconds.
#![no_main]

use std::time::Duration;

use leasehold_core::failure::retry_after;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &str)| {
    let (received, header) = input;
    let wait = retry_after(header, received);
    if let Ok(seconds) = header.parse::<u64>()
        && !header.starts_with('+')
    {
        assert_eq!(wait, Some(Duration::from_secs(seconds)));
    }
    if header.starts_with('-') || header.contains('.') {
        assert_eq!(wait, None, "{header:?}");
    }
});
