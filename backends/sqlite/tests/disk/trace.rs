//! Owns reading what `strace` wrote down: the writes, syncs, cuts and removals of a child's files, in the
//! order in which they were done, and what the child said. Refuses to know what the files hold.

use std::collections::HashMap;

/// What strace is asked for.
pub(crate) const CALLS: &str =
    "trace=pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,rename";

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Bytes were handed to the system.
    Write { file: String, at: usize, bytes: Vec<u8> },
    /// All that a file holds has reached the disk.
    Sync { file: String },
    /// The names in the folder have reached the disk, and so have removals.
    SyncFolder,
    /// A file was cut or lengthened.
    Cut { file: String, length: usize },
    /// A file was removed.
    Remove { file: String },
    /// A line of the child's own.
    Said(String),
}

/// Reads a whole trace; what other files than those that begin so had done to them is left out.
pub(crate) fn read(trace: &str, files: &str) -> Vec<Done> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut done = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(head) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, head);
        } else if let Some((_, tail)) = call.split_once(" resumed>") {
            let head = begun.remove(thread).expect("a call that was begun");
            done.extend(one(&format!("{head}{tail}"), files));
        } else {
            done.extend(one(call, files));
        }
    }
    done
}

fn one(call: &str, files: &str) -> Option<Done> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") = ").or_else(|| rest.rsplit_once(')'))?;
    let result = result.trim_start_matches([' ', '=']);
    if result.starts_with('-') {
        return None;
    }
    if name == "unlink" || name == "unlinkat" {
        let path = text(&quoted(arguments)?);
        return path.starts_with(files).then_some(Done::Remove { file: path });
    }
    assert_ne!(name, "rename", "nobody renames a database: {call}");
    let (handle, arguments) = arguments.split_once('>').unwrap_or((arguments, ""));
    let (number, path) = handle.split_once('<')?;
    let path = text(&bytes(path));
    let last = |arguments: &str| -> Option<usize> {
        arguments.rsplit_once(", ").map_or(arguments, |(_, last)| last).trim().parse().ok()
    };
    if name == "write" && number.trim() == "1" {
        return Some(Done::Said(text(&quoted(arguments)?).trim().to_owned()));
    }
    let folder = std::path::Path::new(files).parent().map(|folder| folder.display().to_string());
    if name == "fsync" && Some(&path) == folder.as_ref() {
        return Some(Done::SyncFolder);
    }
    if !path.starts_with(files) || path.ends_with("-shm") {
        return None;
    }
    match name {
        "pwrite64" => {
            let written: usize = result.trim().parse().ok()?;
            let mut bytes = quoted(arguments)?;
            assert!(bytes.len() >= written, "strace left bytes out");
            bytes.truncate(written);
            Some(Done::Write { file: path, at: last(arguments)?, bytes })
        }
        "fsync" | "fdatasync" => Some(Done::Sync { file: path }),
        "ftruncate" => Some(Done::Cut { file: path, length: last(arguments)? }),
        other => panic!("{other} was not foreseen: {}", &call[..call.len().min(200)]),
    }
}

/// The bytes of the first string among some arguments.
fn quoted(arguments: &str) -> Option<Vec<u8>> {
    let (_, rest) = arguments.split_once('"')?;
    let (inside, after) = rest.split_once('"')?;
    assert!(!after.starts_with("..."), "strace left bytes out");
    Some(bytes(inside))
}

/// `\x61\x62` is `ab`; what is not written so stands for itself.
fn bytes(text: &str) -> Vec<u8> {
    match text.starts_with("\\x") {
        true => text
            .split("\\x")
            .skip(1)
            .map(|two| u8::from_str_radix(two, 16).expect("two digits"))
            .collect(),
        false => text.as_bytes().to_vec(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks the reading itself.
pub(crate) fn calls_of_two_threads_are_told_apart() {
    let trace = "7  pwrite64(5<\\x2f\\x61>, \"\\x01\\x02\", 2, 32 <unfinished ...>\n\
                 8  fdatasync(5<\\x2f\\x61>) = 0\n\
                 7  <... pwrite64 resumed>) = 2\n\
                 8  write(1<pipe:[9]>, \"\\x68\\x69\\x0a\", 3) = 3\n\
                 8  pwrite64(6<\\x2f\\x62>, \"\\x01\", 1, 0) = 1\n\
                 8  unlink(\"\\x2f\\x61\") = 0\n\
                 8  +++ exited with 0 +++";
    let file = || "/a".to_owned();
    let expected = [
        Done::Sync { file: file() },
        Done::Write { file: file(), at: 32, bytes: vec![1, 2] },
        Done::Said("hi".into()),
        Done::Remove { file: file() },
    ];
    assert_eq!(read(trace, "/a"), expected);
}
