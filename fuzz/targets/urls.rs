//! Feeds texts to the readers of database URLs: neither panics, a refusal says that it is `Invalid` or
//! cannot read a named file, and no password comes back in it.
#![no_main]

use leasehold_core::{ErrorKind, Result};
use libfuzzer_sys::fuzz_target;

const PASSWORD: &str = "correct-horse-battery";

fn refused(read: Result<()>) {
    if let Err(error) = read {
        assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unavailable), "{error}");
        assert!(!error.to_string().contains(PASSWORD), "{error}");
    }
}

fuzz_target!(|text: &str| {
    refused(leasehold_sqlite::read_url(text));
    refused(leasehold_sqlite::read_url(&format!("sqlite:{text}")));
    refused(leasehold_postgres::read_url(&format!("postgres://me:{PASSWORD}@{text}")));
});
