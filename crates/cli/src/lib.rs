//! What the `leasehold` command measures and opens, for the command and for the repository's own
//! benchmark. Owns nothing but the way in; it is no interface to build on.

#[doc(hidden)]
pub mod bench;
#[doc(hidden)]
pub mod connect;
