//! Owns how long the machine has been up, which all its processes agree on and no step of the wall clock
//! touches. It tells who opens a file how much time has passed since the file's clock was last kept.
//!
//! Linux tells it, with an id of each start of the machine; elsewhere it is not known, and the clock of a file
//! that is opened goes on from where it was kept.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::clock::steady;

/// A start of the machine.
#[derive(Debug)]
struct Boot {
    id: String,
    /// How long it had been up, in microseconds, and when that was read.
    up: i64,
    at: Instant,
}

/// Read once: files of the kernel are too slow for each transaction.
static BOOT: OnceLock<Option<Boot>> = OnceLock::new();

fn boot() -> Option<&'static Boot> {
    let read = || {
        let at = steady();
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let up = parse(&fs::read_to_string("/proc/uptime").ok()?)?;
        (!id.is_empty()).then_some(Boot { id, up, at })
    };
    BOOT.get_or_init(read).as_ref()
}

/// Seconds with a fraction, as the kernel writes them, in microseconds.
fn parse(text: &str) -> Option<i64> {
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    let up = Duration::try_from_secs_f64(seconds).ok()?;
    i64::try_from(up.as_micros()).ok()
}

/// The machine's start, and for how long it has been up at that time; nothing where that is not known.
pub(crate) fn at(now: Instant) -> (Option<&'static str>, Option<i64>) {
    let Some(boot) = boot() else { return (None, None) };
    let since = now.saturating_duration_since(boot.at).as_micros();
    (Some(&boot.id), Some(boot.up.saturating_add(i64::try_from(since).unwrap_or(i64::MAX))))
}

/// What a file keeps of its clock: the time, and the machine's uptime then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) clock: i64,
    pub(crate) boot: Option<String>,
    pub(crate) up: Option<i64>,
}

impl Kept {
    /// What the clock may show by now at most. After another start of the machine nobody is left who holds a
    /// lease, so nothing bounds it.
    pub(crate) fn by_now(&self, now: Instant) -> i64 {
        self.beside(at(now))
    }

    fn beside(&self, (boot, up): (Option<&str>, Option<i64>)) -> i64 {
        let (Some(boot), Some(up)) = (boot, up) else { return self.clock };
        match (self.boot.as_deref(), self.up) {
            (Some(then), Some(before)) if then == boot => {
                self.clock.saturating_add(up.saturating_sub(before).max(0))
            }
            (Some(_), _) => i64::MAX,
            (None, _) => self.clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-6
    #[test]
    fn as_much_has_passed_as_the_machine_was_up() {
        let kept =
            |boot: Option<&str>, up| Kept { clock: 1_000, boot: boot.map(str::to_owned), up };
        let now = (Some("a"), Some(70));
        assert_eq!(kept(Some("a"), Some(50)).beside(now), 1_020);
        assert_eq!(kept(Some("a"), Some(90)).beside(now), 1_000, "never back");
        assert_eq!(kept(Some("b"), Some(50)).beside(now), i64::MAX, "started anew since");
        assert_eq!(kept(None, None).beside(now), 1_000, "kept where it was not known");
        assert_eq!(kept(Some("a"), Some(50)).beside((None, None)), 1_000, "not known here");
    }

    /// Proves: GLO-6
    #[test]
    fn the_kernels_figure_is_read() {
        assert_eq!(parse("12345.67 99.00\n"), Some(12_345_670_000));
        for none in ["", "up", "-1.00 2", "nan"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
