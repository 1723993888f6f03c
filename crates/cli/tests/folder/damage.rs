//! What a damaged row does to a folder: nothing to the other files.

use leasehold::State;
use libtest_mimic::Failed;

use super::yard::{Yard, same};

/// Two jobs of a folder cannot be read: producer and worker go on with the other files, the log names both,
/// and a run with `--once` ends.
///
/// Proves: GLO-1, PRD-1
pub(crate) fn damaged_jobs_hold_up_no_other_file(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("")?;
    for number in 0..4 {
        yard.put(number.to_string(), "x")?;
    }
    yard.run(&["--role=producer", "--once"])?;
    let mut ids: Vec<_> = yard.jobs()?.iter().map(|job| job.id).collect();
    ids.sort_unstable();
    yard.sql(include_str!("../operator/damage.sql"))?;
    yard.put("later", "x")?;
    let out = yard.run(&["--role=all", "--once"])?;
    same("files done", yard.done().len(), 3)?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    for id in [ids.first(), ids.last()].into_iter().flatten() {
        let named = log.lines().filter(|line| line.contains("\"level\":\"error\""));
        let named = named.filter(|line| line.contains(&id.to_string())).count();
        same(&log, named > 0, true)?;
    }
    yard.sql(include_str!("../operator/mend.sql"))?;
    let states: Vec<_> = yard.jobs()?.iter().map(|job| job.state).collect();
    let waiting = states.iter().filter(|state| **state == State::Waiting).count();
    same("jobs, of which rest", (states.len(), waiting), (5, 2))
}
