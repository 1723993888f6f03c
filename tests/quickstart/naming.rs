//! Which files the quickstart takes, and what it does about names that its payloads cannot hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::files::{below, job};
use crate::{Told, pure};

pure![a_name_that_is_no_text_is_left_out_and_the_others_are_taken];

/// Proves: PAR-3
fn a_name_that_is_no_text_is_left_out_and_the_others_are_taken() -> Told {
    let folder = std::env::temp_dir().join(format!("leasehold-quickstart-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep"))?;
    for name in [&b"plain"[..], "deep/ü".as_bytes(), b"no\xfftext", b".hidden"] {
        std::fs::write(folder.join(OsStr::from_bytes(name)), "x")?;
    }
    let found = below(&folder, &folder.join("place"))?;
    assert_eq!(found, [folder.join("deep/ü"), folder.join("plain")]);
    for path in &found {
        assert_eq!(job(path)?.request_hash(), job(path)?.request_hash());
    }
    assert!(
        job(&folder.join(OsStr::from_bytes(b"no\xfftext"))).is_err(),
        "no other name is made up"
    );
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
