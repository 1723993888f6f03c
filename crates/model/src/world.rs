//! Owns the state of the model: the store, its standby, the workers, the outside, and one request
//! that is still on its way.

use crate::property::Broken;
use crate::{Fence, JOBS, Store, Verdict, WORKERS, Worker};

/// A request on its way, whose reply nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the requests")]
pub enum Request {
    Claim { worker: u8, claim: u8, again: bool },
    Renew(Fence),
    Settle(Fence, Verdict),
    Effect(Fence),
}

/// What a job's effects go to: it takes no smaller token than it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Outside {
    pub token: u16,
    /// The newest claim that had an effect: its epoch and its ghost.
    pub claim: (u8, u8),
}

/// A state of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct World {
    pub store: Store,
    /// What the standby has seen; as the store once no failover can come any more.
    pub standby: Option<Store>,
    pub failovers: u8,
    pub workers: [Worker; WORKERS],
    pub late: Option<Request>,
    pub outside: [Outside; JOBS],
    /// How many claim ids were made, and how many claims there were.
    pub claims: u8,
    pub ghosts: u8,
    /// What was acknowledged, as [`crate::Row::said`], and not lost with a failover since.
    pub told: [u32; JOBS],
    pub broken: Broken,
}
