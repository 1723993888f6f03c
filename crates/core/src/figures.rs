//! Owns how figures are gathered by queue: what cannot be read is left out and told of, and all else counts.
//! Refuses to know how a row was damaged. For stores.

use std::collections::BTreeMap;

use crate::error::{ErrorKind, Result};
use crate::name::QueueName;
use crate::row::QueueRow;
use crate::upkeep::{QueueStats, Stats};

/// The figures of queues while they are counted.
#[derive(Debug, Default)]
pub struct Figures {
    queues: BTreeMap<QueueName, QueueStats>,
    lacks_queues: bool,
    lacks_rows: bool,
    lacks_times: bool,
}

impl Figures {
    /// Begins at zero with every queue that there is.
    pub fn of(queues: impl IntoIterator<Item = QueueRow>) -> Self {
        let begun =
            |row: QueueRow| (row.name.clone(), QueueStats::new(row.name, row.paused, row.limit));
        Self { queues: queues.into_iter().map(begun).collect(), ..Self::default() }
    }

    /// The same, past those whose rows cannot be read.
    pub fn past<U>(queues: Vec<std::result::Result<QueueRow, U>>) -> Self {
        let lacks_queues = queues.iter().any(std::result::Result::is_err);
        Self { lacks_queues, ..Self::of(queues.into_iter().flatten()) }
    }

    /// The figures of a queue; `None` where its name cannot be read.
    ///
    /// # Errors
    /// Whatever else reading the name said.
    pub fn queue(&mut self, name: Result<QueueName>) -> Result<Option<&mut QueueStats>> {
        let Some(name) = readable(name, &mut self.lacks_rows)? else { return Ok(None) };
        let begun = || QueueStats::new(name.clone(), false, None);
        Ok(Some(self.queues.entry(name.clone()).or_insert_with(begun)))
    }

    /// A time of the figures; `None` where it cannot be read.
    ///
    /// # Errors
    /// Whatever else reading it said.
    pub fn time<T>(&mut self, time: Result<T>) -> Result<Option<T>> {
        readable(time, &mut self.lacks_times)
    }

    /// Enters what was counted, and warns of what is not in it.
    pub fn enter(self, stats: &mut Stats) {
        stats.queues = self.queues.into_values().collect();
        let warnings = [
            (self.lacks_queues, "a queue whose row cannot be read is left out, with its settings"),
            (self.lacks_rows, "rows of a queue whose name cannot be read are not counted"),
            (self.lacks_times, "a time that cannot be read is left out of the figures"),
        ];
        for (_, why) in warnings.into_iter().filter(|(lacks, _)| *lacks) {
            stats.warnings.push(format!("{why}: `leasehold verify` names the rows"));
        }
    }
}

fn readable<T>(read: Result<T>, lacks: &mut bool) -> Result<Option<T>> {
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            *lacks = true;
            Ok(None)
        }
        said => said.map(Some),
    }
}
