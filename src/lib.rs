//! Owns the front door: the vocabulary of the contract under one name. It refuses to know how an
//! engine keeps its promises; the backends do.
//!
//! At-least-once execution; at most one settlement per claim; effects exactly once only inside the
//! caller's transaction or behind the fence.

pub use leasehold_core::*;
