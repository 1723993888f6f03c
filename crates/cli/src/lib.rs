//! What the `leasehold` command is made of, for the command and for the repository's own
//! benchmark. Owns nothing but the way in; it is no interface to build on.

#[doc(hidden)]
pub mod bench;
mod clock;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod conformance;
#[doc(hidden)]
pub mod connect;
#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod manual;
#[doc(hidden)]
pub mod operate;
mod place;
#[doc(hidden)]
pub mod role;
#[doc(hidden)]
pub mod variables;
