//! Owns chance: small draws from a seed, the same in every run and on every machine.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Draw(StdRng);

impl Draw {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    /// A number from 0 to below `end`; 0 when that is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { self.0.random_range(0..end) }
    }

    /// True once in `n` draws.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len());
        of.get(at)
    }

    /// One of the latest entries more often than one of the first.
    pub(crate) fn late<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let back = self.below(of.len().min(8));
        if self.once_in(4) { self.pick(of) } else { of.iter().rev().nth(back) }
    }

    pub(crate) fn id(&mut self) -> Uuid {
        Uuid::from_u128(self.0.random())
    }

    pub(crate) fn seconds(&mut self, end: usize) -> Duration {
        Duration::from_secs(self.below(end) as u64)
    }
}
