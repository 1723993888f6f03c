//! Owns the mistakes that the model can be made to make, each a bug that a queue somewhere has had.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A leased job is settled and renewed by whoever says so.
    FenceIgnored,
    /// Versions are compared and claim ids are not.
    VersionOnly,
    /// A replay starts the versions anew.
    VersionResetOnReplay,
    /// A claim leaves the version as it is.
    VersionNotRaised,
    /// A statement that changed no row is told as a success.
    ZeroRowsAreSuccess,
    /// A claim takes a job whose lease still runs.
    StolenBeforeExpiry,
    /// A sweep takes a job whose lease still runs.
    ReclaimedBeforeExpiry,
    /// A failover keeps the epoch.
    EpochNotRaised,
    /// The epoch is raised, and nobody compares it.
    EpochIgnored,
    /// A settlement after the lease's end is taken.
    LateSettlementTaken,
    /// A heartbeat brings a lapsed lease back to life.
    LateRenewalTaken,
    /// A sweep only frees the job, and a settlement does not ask for its state.
    RescuedByTimeOnly,
    /// A sweep takes back whatever has a lease that lapsed, ended jobs too.
    EndedIsResurrected,
    /// A settlement that is said twice is done twice.
    RepeatIsDoneAgain,
    /// A repeat is recognised by its claim, whatever its verdict.
    VerdictNotCompared,
    /// A claim that is asked for again takes another job.
    RepeatTakesMore,
    /// A claim that is asked for again answers with a job that it no longer holds.
    RepeatTellsOldNews,
    /// The outside takes every effect.
    TokenIgnored,
    /// A lapsed lease gives its attempt back.
    LapseIsFree,
    /// A settlement is told before it is kept.
    ToldBeforeKept,
    /// A claim takes a job that waits for another.
    HeldIsClaimed,
    /// A settlement ends a job and does not look who waits for it.
    EndTellsNobody,
    /// A lapsed lease ends a job and nobody looks who waits for it.
    LapseTellsNobody,
    /// A job that is given back to be tried again counts as over.
    HandBackFrees,
    /// A bad end frees whoever waits for a good one.
    FailureFrees,
    /// A good end cancels whoever waits.
    SuccessCancels,
}

impl Mutant {
    /// Every mistake.
    pub const ALL: [Self; 26] = [
        Self::FenceIgnored,
        Self::VersionOnly,
        Self::VersionResetOnReplay,
        Self::VersionNotRaised,
        Self::ZeroRowsAreSuccess,
        Self::StolenBeforeExpiry,
        Self::ReclaimedBeforeExpiry,
        Self::EpochNotRaised,
        Self::EpochIgnored,
        Self::LateSettlementTaken,
        Self::LateRenewalTaken,
        Self::RescuedByTimeOnly,
        Self::EndedIsResurrected,
        Self::RepeatIsDoneAgain,
        Self::VerdictNotCompared,
        Self::RepeatTakesMore,
        Self::RepeatTellsOldNews,
        Self::TokenIgnored,
        Self::LapseIsFree,
        Self::ToldBeforeKept,
        Self::HeldIsClaimed,
        Self::EndTellsNobody,
        Self::LapseTellsNobody,
        Self::HandBackFrees,
        Self::FailureFrees,
        Self::SuccessCancels,
    ];
}
