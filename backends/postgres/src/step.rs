//! Owns what a test may do to a storage step: end the process on either side of it, let it wait for
//! leave, let it fail. All of that is compiled away without the feature `failpoints`.

/// A storage step under way.
pub(crate) struct Step {
    #[cfg(feature = "failpoints")]
    name: &'static str,
    #[cfg(feature = "failpoints")]
    _leave: Option<leasehold_core::failpoint::Step>,
}

impl Step {
    /// Begins a step, as soon as a test gives leave for it.
    pub(crate) async fn begin(_name: &'static str) -> Self {
        #[cfg(feature = "failpoints")]
        {
            let leave = leasehold_core::failpoint::Step::begin(_name);
            if let Some(leave) = &leave {
                leave.await;
            }
            leasehold_core::failpoint::hit(_name);
            Self { name: _name, _leave: leave }
        }
        #[cfg(not(feature = "failpoints"))]
        Self {}
    }

    /// Ends it.
    pub(crate) fn end(self) {
        #[cfg(feature = "failpoints")]
        leasehold_core::failpoint::hit(self.name);
    }
}

/// What a test wants the next step to be instead: text that the server answers with an error of its own.
pub(crate) fn fault() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return leasehold_core::failpoint::fault().map(crate::faults::text);
    #[cfg(not(feature = "failpoints"))]
    None
}

/// As [`fault`], where the step is a commit.
pub(crate) fn fault_of_commit() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return leasehold_core::failpoint::fault().map(crate::faults::text_of_commit);
    #[cfg(not(feature = "failpoints"))]
    None
}

/// As [`fault`], where the step is a transaction by itself: whether it is done before all the same.
pub(crate) fn fault_of_alone() -> Option<(bool, String)> {
    #[cfg(feature = "failpoints")]
    return leasehold_core::failpoint::fault().map(crate::faults::text_of_alone);
    #[cfg(not(feature = "failpoints"))]
    None
}
