//! Feeds texts to ids, names and cursors: none panics, and what is read is written the same again.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use leasehold_core::*;
use libfuzzer_sys::fuzz_target;

fn reads_back<T: FromStr + Display + Debug + PartialEq>(text: &str) {
    if let Ok(read) = T::from_str(text) {
        let written = read.to_string();
        let again = T::from_str(&written).unwrap_or_else(|_| panic!("{written:?} is not read"));
        assert_eq!(again, read, "{text:?} came back as {written:?}");
    }
}

fuzz_target!(|text: &str| {
    reads_back::<JobId>(text);
    reads_back::<EventId>(text);
    reads_back::<ClaimId>(text);
    reads_back::<WorkerId>(text);
    reads_back::<QueueName>(text);
    reads_back::<JobKind>(text);
    reads_back::<Topic>(text);
    reads_back::<Scope>(text);
    reads_back::<IdempotencyKey>(text);
    reads_back::<OrderKey>(text);
    reads_back::<Actor>(text);
    reads_back::<Cursor>(text);
});
