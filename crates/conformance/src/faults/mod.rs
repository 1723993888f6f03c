//! Owns what hurts a store and the programs on it: a wire that fails, processes that stop and end, and a
//! load whose every answer is kept and judged. Compiled with the feature `faults`.

pub mod load;
pub mod proxy;
mod relay;
pub mod verdict;
mod wire;
