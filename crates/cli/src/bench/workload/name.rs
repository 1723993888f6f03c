//! Owns the list of workloads: their names and their sizes unless told otherwise.

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Enqueue one job after the other, each awaited.
    #[value(name = "w1")]
    W1,
    /// Enqueue single jobs from 64 tasks at once.
    #[value(name = "w1_c64")]
    W1C64,
    /// Enqueue in batches of 100.
    #[value(name = "w2_100")]
    W2By100,
    /// Enqueue in batches of 1,000.
    #[value(name = "w2_1000")]
    W2By1000,
    /// A worker drains jobs that are already queued, until the database says that none is left.
    #[value(name = "w3")]
    W3,
    /// The same of a queue whose jobs are of a thousand partitions, each with a limit of its own.
    #[value(name = "w3_partitions")]
    W3Partitions,
    /// From the start of an enqueue into an idle system to the start of its handler.
    #[value(name = "w4_from_call")]
    W4FromCall,
    /// From the return of an enqueue into an idle system to the start of its handler.
    #[value(name = "w4_from_commit")]
    W4FromCommit,
    /// Claim and settle from a queue of 10,000 jobs.
    #[value(name = "w5_10k")]
    W5By10K,
    /// The same from a queue of a million due jobs.
    #[value(name = "w5_1m")]
    W5By1M,
    /// The same from a queue that ten million ended jobs are in.
    #[value(name = "w5_done10m")]
    W5Done10M,
    /// The same from a queue that a million jobs of a later day are in.
    #[value(name = "w5_future1m")]
    W5Future1M,
    /// Worker processes, one to eight, drain one database.
    #[value(name = "w6")]
    W6,
    /// Claims with and without a transaction that somebody left open.
    #[value(name = "w7")]
    W7,
    /// The size of a worker process with 10,000 jobs in hand.
    #[value(name = "memory")]
    Memory,
}

impl Workload {
    pub const ALL: [Self; 15] = [
        Self::W1,
        Self::W1C64,
        Self::W2By100,
        Self::W2By1000,
        Self::W3,
        Self::W3Partitions,
        Self::W4FromCall,
        Self::W4FromCommit,
        Self::W5By10K,
        Self::W5By1M,
        Self::W5Done10M,
        Self::W5Future1M,
        Self::W6,
        Self::W7,
        Self::Memory,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W1C64 => "w1_c64",
            Self::W2By100 => "w2_100",
            Self::W2By1000 => "w2_1000",
            Self::W3 => "w3",
            Self::W3Partitions => "w3_partitions",
            Self::W4FromCall => "w4_from_call",
            Self::W4FromCommit => "w4_from_commit",
            Self::W5By10K => "w5_10k",
            Self::W5By1M => "w5_1m",
            Self::W5Done10M => "w5_done10m",
            Self::W5Future1M => "w5_future1m",
            Self::W6 => "w6",
            Self::W7 => "w7",
            Self::Memory => "memory",
        }
    }

    /// Jobs unless told otherwise.
    pub fn jobs(self) -> u32 {
        match self {
            Self::W1 => 1_000,
            Self::W1C64 => 5_000,
            Self::W4FromCall | Self::W4FromCommit => 200,
            Self::W6 => 40_000,
            Self::W7 => 60_000,
            _ => 10_000,
        }
    }

    /// Other rows of the queue unless told otherwise.
    pub fn rows(self) -> u32 {
        match self {
            Self::W5By1M | Self::W5Future1M => 1_000_000,
            Self::W5Done10M => 10_000_000,
            _ => 0,
        }
    }
}
