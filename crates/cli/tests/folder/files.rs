//! Which files become jobs, how often, in which order.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use leasehold::State;
use libtest_mimic::Failed;

use super::yard::{Running, Yard, same};

/// Proves: PRD-1
pub(crate) fn each_version_is_done_once(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("")?;
    for number in 0..40 {
        yard.put(format!("{}/{number}.txt", number % 3), "first")?;
    }
    yard.run(&["--role=all", "--once"])?;
    let done = yard.done();
    same("files done", done.len(), 40)?;
    same("different files", done.iter().collect::<BTreeSet<_>>().len(), 40)?;
    yard.run(&["--role=all", "--once"])?;
    same("done again without a change", yard.done().len(), 40)?;
    yard.put("1/1.txt", "a second version")?;
    yard.run(&["--role=all", "--once"])?;
    let done = yard.done();
    same("done after a change", done.len(), 41)?;
    same("the changed one", done.last().map(|path| path.ends_with(b"1/1.txt")), Some(true))?;
    let states: BTreeSet<_> = yard.jobs()?.iter().map(|job| job.state).collect();
    same("states", states, BTreeSet::from([State::Succeeded]))
}

/// Proves: PRD-1
pub(crate) fn odd_names_and_links_are_no_obstacle(yard: &Yard) -> Result<(), Failed> {
    use std::os::unix::ffi::OsStrExt;
    yard.configure_to_record("")?;
    let names: [&[u8]; 6] =
        [b"plain", b"two words", b"new\nline", b"\xff\xfe raw", b"-rf", b"$(touch x);'\"*"];
    for name in names {
        yard.put(Path::new(std::ffi::OsStr::from_bytes(name)), "text")?;
    }
    std::os::unix::fs::symlink(yard.inbox(), yard.inbox().join("loop"))?;
    std::os::unix::fs::symlink("/etc", yard.inbox().join("outside"))?;
    std::os::unix::fs::symlink("nowhere", yard.inbox().join("dangling"))?;
    yard.run(&["--role=all", "--once"])?;
    let inbox = std::fs::canonicalize(yard.inbox())?;
    let wanted: BTreeSet<Vec<u8>> = names
        .iter()
        .map(|name| inbox.join(std::ffi::OsStr::from_bytes(name)).as_os_str().as_bytes().to_vec())
        .collect();
    same("files done", yard.done().into_iter().collect::<BTreeSet<_>>(), wanted)
}

/// Proves: PRD-1
pub(crate) fn a_file_that_went_or_changed_is_passed_over(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("")?;
    let (gone, changed) = (yard.put("gone", "1")?, yard.put("changed", "1")?);
    yard.put("stays", "1")?;
    yard.run(&["--role=producer", "--once"])?;
    std::fs::remove_file(gone)?;
    std::fs::write(changed, "another length")?;
    yard.run(&["--role=worker", "--once"])?;
    same("files done", yard.done().len(), 1)?;
    let mut results: Vec<String> = Vec::new();
    for job in yard.jobs()? {
        same("state", job.state, State::Succeeded)?;
        results.push(job.result.map(|result| result.as_str().to_owned()).unwrap_or_default());
    }
    for why in ["{\"skipped\":\"vanished\"}", "{\"skipped\":\"changed\"}"] {
        same(why, results.iter().filter(|result| *result == why).count(), 1)?;
    }
    yard.run(&["--role=all", "--once"])?;
    same("files done with the new version", yard.done().len(), 2)
}

/// Proves: PRD-1, PF-1
pub(crate) fn globs_and_priorities_hold(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record(
        "producer: include_globs: ['*.txt', '*.PDF', 'deep/**']
         producer: exclude_globs: [skip/, '*.tmp.txt']
         producer: high_priority_exts: [.pdf]
         worker: count: 1",
    )?;
    for name in ["a.txt", "b.txt", "z.PDF", "c.md", "skip/d.txt", "e.tmp.txt", "deep/er/f.bin"] {
        yard.put(name, "x")?;
    }
    yard.run(&["--role=producer", "--once"])?;
    yard.run(&["--role=worker", "--once"])?;
    let done = yard.done();
    let names: Vec<String> = done
        .iter()
        .map(|path| String::from_utf8_lossy(path).rsplit('/').next().unwrap_or_default().to_owned())
        .collect();
    same("the urgent one first", names.first().map(String::as_str), Some("z.PDF"))?;
    let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    same("files done", all, BTreeSet::from(["a.txt", "b.txt", "z.PDF", "f.bin"]))
}

/// Scans are an hour apart; what comes meanwhile, in a new folder too, is done all the same, once.
///
/// Proves: PRD-1
pub(crate) fn a_watched_folder_is_scanned_soon(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("producer: watch: true")?;
    yard.put("first", "x")?;
    let log = std::fs::File::create(yard.beside("log"))?;
    let mut all = yard.command(&["--role=all"]);
    let mut all = Running::of(all.env("PRODUCER_SCAN_INTERVAL", "1h").stderr(log).spawn()?);
    yard.until("the first scan", |yard| Ok(yard.done().len() == 1))?;
    for (number, name) in ["second", "deep/third", "deep/er/fourth"].iter().enumerate() {
        yard.put(name, "x")?;
        yard.until(name, |yard| Ok(yard.done().len() == number + 2))?;
    }
    same("exit code", all.terminate()?, Some(0))?;
    same("jobs", yard.jobs()?.len(), 4)
}

/// Proves: PRD-1
pub(crate) fn producers_share_one_rate(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("producer: rate_limit_per_sec: 20")?;
    for number in 0..60 {
        yard.put(number.to_string(), "x")?;
    }
    yard.run(&["--role=producer", "--once"])?; // opens, and takes the first burst with it
    std::fs::remove_dir_all(yard.inbox())?;
    for number in 100..160 {
        yard.put(number.to_string(), "x")?;
    }
    let began = Instant::now();
    let mut both = [yard.start(&["--role=producer"])?, yard.start(&["--role=producer"])?];
    yard.until("120 jobs", |yard| Ok(yard.jobs()?.len() == 120))?;
    // At 20 a second, with at most 20 saved up, 60 files take 2 s, however many producers there are.
    if began.elapsed() < Duration::from_millis(1_900) {
        return Err(format!("60 files in {:?}", began.elapsed()).into());
    }
    for producer in &mut both {
        same("exit code", producer.terminate()?, Some(0))?;
    }
    Ok(())
}
