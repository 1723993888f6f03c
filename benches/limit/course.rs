//! Owns the lines of the table: what is held against what, how large, and how far it should go.

use crate::Outcome;
use crate::engine::{Engine, Place};
use crate::measure::{Course, Kind};
use crate::table::{Table, Target};
use leasehold_cli::bench::workload::Workload;

use Target::{AtLeast, AtMost};

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) jobs: usize,
    pub(crate) rows: Option<usize>,
}

impl Sizes {
    pub(crate) fn of(jobs: u32, rows: Option<u32>) -> Outcome<Self> {
        let rows = rows.map(usize::try_from).transpose()?;
        Ok(Self { jobs: usize::try_from(jobs)?, rows })
    }

    /// Jobs of a workload: those that take a commit for each job have fewer.
    pub(crate) fn jobs_of(self, workload: Workload) -> usize {
        let jobs = match workload {
            Workload::W1 => self.jobs / 10,
            Workload::W1C64 => self.jobs / 2,
            Workload::W3 | Workload::W3Partitions => self.jobs * 2,
            Workload::W4FromCall | Workload::W4FromCommit => self.jobs / 50,
            Workload::W6 => self.jobs * 4,
            Workload::W7 => self.jobs * 6,
            Workload::Memory => self.jobs.min(10_000),
            _ => self.jobs,
        };
        jobs.max(1)
    }

    /// Other rows in the queue.
    pub(crate) fn rows_of(self, workload: Workload) -> usize {
        let rows = usize::try_from(workload.rows()).unwrap_or(usize::MAX);
        self.rows.map_or(rows, |given| given.min(rows))
    }
}

impl Course {
    /// Whether a word given on the command line means this one.
    pub(crate) fn is(&self, word: &str) -> bool {
        let name = if self.kind == Kind::Reapers { "reapers" } else { self.workload.name() };
        name.starts_with(word)
    }
}

/// Every course of an engine, with the targets that the project has set itself.
pub(crate) fn all(engine: Engine) -> Vec<Course> {
    let lite = engine == Engine::Sqlite;
    let raw =
        |workload, batch, log, target| Course { workload, kind: Kind::Raw { batch, log }, target };
    let own = |workload, kind, target| Course { workload, kind, target };
    let crowd = |workload| own(workload, Kind::Crowd, AtLeast(0.9));
    vec![
        raw(Workload::W1, 1, false, AtLeast(0.85)),
        if lite {
            own(Workload::W1C64, Kind::GroupCommit, AtLeast(15.0))
        } else {
            raw(Workload::W1C64, 1, false, AtLeast(0.8))
        },
        raw(Workload::W2By100, 100, false, Target::None),
        raw(Workload::W2By1000, 1_000, false, AtLeast(if lite { 0.8 } else { 0.75 })),
        raw(Workload::W3, 1_000, false, AtLeast(if lite { 0.7 } else { 0.75 })),
        raw(Workload::W3, 100, false, Target::None),
        raw(Workload::W3, 1_000, true, Target::None),
        own(Workload::W3, Kind::Fence { batch: 1_000 }, AtLeast(0.97)),
        own(Workload::W3Partitions, Kind::Partitions, AtLeast(0.7)),
        own(Workload::W3, Kind::Reapers, AtLeast(0.95)),
        own(Workload::W4FromCall, Kind::Pickup, AtMost(1.3)),
        own(Workload::W4FromCommit, Kind::Pickup, AtMost(1.2)),
        crowd(Workload::W5By1M),
        crowd(Workload::W5Future1M),
        crowd(Workload::W5Done10M),
        own(Workload::W6, Kind::Processes, AtLeast(if lite { 0.5 } else { 0.9 })),
        own(Workload::W7, Kind::Held, AtMost(5.0)),
        own(Workload::Memory, Kind::Memory, AtMost(64.0)),
    ]
}

impl Course {
    pub(crate) async fn measure(
        &self,
        place: &Place,
        engine: Engine,
        sizes: Sizes,
        rounds: usize,
        table: &mut Table,
    ) -> Outcome<()> {
        let run = crate::measure::Run { place, engine, sizes, rounds };
        match self.kind {
            Kind::Raw { batch, log } => run.raw(self, batch, log, table).await,
            Kind::Fence { batch } => run.fence(self, batch, table).await,
            Kind::GroupCommit => run.group_commit(self, table).await,
            Kind::Partitions => run.partitions(self, table).await,
            Kind::Reapers => run.reapers(self, table).await,
            Kind::Pickup => run.pickup(self, table).await,
            Kind::Crowd => run.crowd(self, table).await,
            Kind::Processes => run.processes(self, table).await,
            Kind::Held => run.held(self, table).await,
            Kind::Memory => run.memory(self, table).await,
        }
    }
}
