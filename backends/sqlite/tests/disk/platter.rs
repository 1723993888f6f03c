//! Owns what a disk holds after the power failed: all that was synced, and of the rest any part, in
//! sectors. Refuses to know what the files mean.

use std::collections::BTreeMap;

use super::trace::Done;

/// What a disk writes at once.
const SECTOR: usize = 512;

/// Small draws from a seed, the same everywhere.
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % end.max(1)
    }
}

/// How much of what was not synced has reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Nothing.
    None,
    /// Each write by chance, whole.
    SomeWrites,
    /// Each sector by chance.
    SomeSectors,
    /// Everything, as when only the process ends.
    All,
}

/// A file on the disk, and what is not there yet.
#[derive(Debug, Default)]
struct File {
    held: Vec<u8>,
    unsynced: Vec<(usize, Done)>,
    /// Whether it was removed, and the folder not synced since: then the removal may be lost, too.
    removed: bool,
}

/// The files at a point of a trace, after the power has failed there; those that are gone are left out.
pub(crate) fn after_power_loss(
    trace: &[Done],
    reached: Reached,
    draw: &mut Draw,
) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<&str, File> = BTreeMap::new();
    for (number, done) in trace.iter().enumerate() {
        match done {
            Done::Write { file, .. } | Done::Cut { file, .. } => {
                let file = files.entry(file).or_default();
                if std::mem::take(&mut file.removed) {
                    *file = File::default();
                }
                file.unsynced.push((number, done.clone()));
            }
            Done::Sync { file } => {
                let file = files.entry(file).or_default();
                for (_, done) in std::mem::take(&mut file.unsynced) {
                    put(&mut file.held, &done, |_| true);
                }
            }
            Done::Remove { file } => files.entry(file).or_default().removed = true,
            Done::SyncFolder => files.retain(|_, file| !file.removed),
            Done::Said(_) => {}
        }
    }
    let mut left = BTreeMap::new();
    for (name, mut file) in files {
        if file.removed && (reached == Reached::All || draw.below(2) == 0) {
            continue;
        }
        for (_, done) in std::mem::take(&mut file.unsynced) {
            let whole = draw.below(2) == 0;
            put(&mut file.held, &done, |_| match reached {
                Reached::None => false,
                Reached::SomeWrites => whole,
                Reached::SomeSectors => draw.below(3) > 0,
                Reached::All => true,
            });
        }
        left.insert(name.to_owned(), file.held);
    }
    left
}

/// Puts the sectors of a write that `reaches` lets through; a hole reads as zeros.
fn put(held: &mut Vec<u8>, done: &Done, mut reaches: impl FnMut(usize) -> bool) {
    match done {
        Done::Write { at, bytes, .. } => {
            let mut from = 0;
            while from < bytes.len() {
                let sector = (at + from) / SECTOR;
                let to = ((sector + 1) * SECTOR - at).min(bytes.len());
                if reaches(sector) {
                    if held.len() < at + to {
                        held.resize(at + to, 0);
                    }
                    held[at + from..at + to].copy_from_slice(&bytes[from..to]);
                }
                from = to;
            }
        }
        Done::Cut { length, .. } if reaches(0) => held.resize(*length, 0),
        _ => {}
    }
}

/// Checks the disk itself.
pub(crate) fn what_was_synced_stays_and_the_rest_may_go() {
    let write = |at, byte| Done::Write { file: "a".into(), at, bytes: vec![byte; 600] };
    let trace = [write(0, 1), Done::Sync { file: "a".into() }, write(0, 2), write(600, 3)];
    let held = |reached, seed| {
        after_power_loss(&trace, reached, &mut Draw::seeded(seed)).remove("a").expect("a file")
    };
    assert_eq!(held(Reached::None, 1), vec![1; 600]);
    let all = [vec![2; 600], vec![3; 600]].concat();
    assert_eq!(held(Reached::All, 1), all);
    let torn: Vec<_> = (0..40).map(|seed| held(Reached::SomeSectors, seed)).collect();
    assert!(torn.iter().any(|held| held[..512] == [2; 512] && held[512..600] == [1; 88]));
    assert!(torn.iter().any(|held| held[..512] == [1; 512] && held[512..600] == [2; 88]));
}
