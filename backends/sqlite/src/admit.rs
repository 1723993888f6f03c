//! Owns admissions: requests taken once, together with the jobs that they ask for.

use leasehold_core::{Admission, Admitted, Remembered, Result};

use crate::joined::Joined;

impl Joined<'_> {
    /// Takes requests once, and enqueues what they ask for.
    ///
    /// # Errors
    /// As `Records::admit`.
    pub fn admit(&self, admission: &Admission) -> Result<Admitted> {
        self.verb("admit", |facts| {
            admission.check(&self.shared.limits)?;
            let mut rows = Vec::with_capacity(admission.requests.len());
            for (at, request) in admission.requests.iter().enumerate() {
                let (answer, row) = self.look_once(facts, request)?;
                if answer != Remembered::New {
                    return Ok(Admitted::Known { at, answer });
                }
                rows.extend(row);
            }
            rows.iter().try_for_each(|row| self.keep_once(facts, row))?;
            match admission.jobs.as_slice() {
                [] => Ok(Admitted::New(Vec::new())),
                jobs => Admitted::all_of(self.enqueue(jobs)?),
            }
        })
    }
}
