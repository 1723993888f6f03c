//! Owns how a lifecycle is put together and which definitions are refused: one that could strand a
//! job where only an operator can free it is not a lifecycle.

use super::{Budget, BudgetScope, Edge, Lifecycle, Place, PublicNames, ResumeAt, State, Verb};
use crate::error::{Error, Result};
use crate::name::{LifecycleName, StageName, Topic};

/// Puts a [`Lifecycle`] together.
///
/// ```
/// use leasehold_core::{Lifecycle, LifecycleName, StageName, State, Verb};
///
/// let lifecycle = Lifecycle::builder(LifecycleName::new("import")?, vec![StageName::new("load")?])
///     .from_leased(Verb::Succeed, State::Succeeded)
///     .from_leased(Verb::Exhaust, State::DeadLetter)
///     .build()?;
/// assert_eq!(lifecycle.revision(), 1);
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LifecycleBuilder {
    lifecycle: Lifecycle,
}

impl LifecycleBuilder {
    pub(super) fn new(name: LifecycleName, stages: Vec<StageName>) -> Self {
        let lifecycle = Lifecycle {
            name,
            revision: 1,
            stages,
            names: PublicNames::default(),
            edges: Vec::new(),
            budget: Budget { scope: BudgetScope::Job, attempts: 5 },
            resume: ResumeAt::FirstStage,
            events: None,
            log: false,
        };
        let mut builder = Self { lifecycle };
        builder = builder.edge(Place::Waiting, Verb::Claim, Place::Leased(0));
        for (before, stage) in (0..).zip(1..builder.stage_count()) {
            builder = builder.edge(Place::Leased(before), Verb::Advance, Place::Leased(stage));
        }
        for verb in [Verb::Retry, Verb::Snooze, Verb::Release, Verb::Reclaim] {
            builder = builder.from_leased(verb, State::Waiting);
        }
        builder
    }

    /// The draft as it is; for the shipped lifecycles, which a test puts through [`Self::build`].
    pub(super) fn into_unchecked(self) -> Lifecycle {
        self.lifecycle
    }

    #[cfg(test)]
    pub(super) fn from_lifecycle(lifecycle: Lifecycle) -> Self {
        Self { lifecycle }
    }

    fn stage_count(&self) -> u8 {
        u8::try_from(self.lifecycle.stages.len()).unwrap_or(u8::MAX)
    }

    /// Sets the revision; a changed definition needs a new one.
    pub fn revision(mut self, revision: u32) -> Self {
        self.lifecycle.revision = revision;
        self
    }

    /// Sets the public names.
    pub fn names(mut self, names: PublicNames) -> Self {
        self.lifecycle.names = names;
        self
    }

    /// Sets the budget; the place to resume at follows: per stage, the failed stage; else the first.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.lifecycle.budget = budget;
        self.lifecycle.resume = match budget.scope {
            BudgetScope::Job => ResumeAt::FirstStage,
            BudgetScope::Stage => ResumeAt::FailedStage,
        };
        self
    }

    /// Sets where a job begins again.
    pub fn resume_at(mut self, resume: ResumeAt) -> Self {
        self.lifecycle.resume = resume;
        self
    }

    /// Lists one move.
    pub fn edge(mut self, from: Place, verb: Verb, to: Place) -> Self {
        self.lifecycle.edges.push(Edge { from, verb, to });
        self
    }

    /// Lists one move from every stage.
    pub fn from_leased(mut self, verb: Verb, to: State) -> Self {
        for stage in 0..self.stage_count() {
            self = self.edge(Place::Leased(stage), verb, Place::of(to, 0));
        }
        self
    }

    /// Makes every transition publish one event under this topic.
    pub fn events(mut self, topic: Topic) -> Self {
        self.lifecycle.events = Some(topic);
        self
    }

    /// Keeps a transition log unless a queue says otherwise.
    pub fn log(mut self) -> Self {
        self.lifecycle.log = true;
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// `Invalid` without stages, with a name twice, with an edge from a stage that does not exist,
    /// two edges of one verb from one place, an advance that skips, or a leased stage from which a
    /// lapsed lease could not end (no `exhaust`).
    pub fn build(self) -> Result<Lifecycle> {
        let lifecycle = self.lifecycle;
        let refuse =
            |why: String| Err(Error::invalid("lifecycle", format!("{}: {why}", lifecycle.name)));
        let stages = &lifecycle.stages;
        if stages.is_empty() || stages.len() > 64 {
            return refuse(format!("has {} stages, 1 to 64 are allowed", stages.len()));
        }
        if lifecycle.revision == 0 || lifecycle.budget.attempts == 0 {
            return refuse("revision and attempts start at 1".to_owned());
        }
        for (at, stage) in stages.iter().enumerate() {
            if stages.iter().skip(at + 1).any(|other| other == stage) {
                return refuse(format!("stage {stage} is listed twice"));
            }
        }
        for (at, edge) in lifecycle.edges.iter().enumerate() {
            if let Some(why) = refused_edge(edge, stages.len()) {
                return refuse(format!("edge {} from {:?} {why}", edge.verb, edge.from));
            }
            let same = |other: &Edge| other.from == edge.from && other.verb == edge.verb;
            if lifecycle.edges.iter().skip(at + 1).any(same) {
                return refuse(format!("{} from {:?} is listed twice", edge.verb, edge.from));
            }
        }
        for stage in 0..u8::try_from(stages.len()).unwrap_or(u8::MAX) {
            if lifecycle.after(Place::Leased(stage), Verb::Exhaust).is_none() {
                return refuse(format!(
                    "stage {stage} has no exhaust: a spent budget would strand"
                ));
            }
        }
        Ok(lifecycle)
    }
}

fn refused_edge(edge: &Edge, stages: usize) -> Option<&'static str> {
    let exists = |place: Place| match place {
        Place::Leased(stage) => usize::from(stage) < stages,
        _ => true,
    };
    if !exists(edge.from) || !exists(edge.to) {
        return Some("names a stage that does not exist");
    }
    let fits = match edge.verb {
        Verb::Claim => edge.from == Place::Waiting && edge.to == Place::Leased(0),
        Verb::Advance => {
            matches!((edge.from, edge.to), (Place::Leased(a), Place::Leased(b)) if b == a + 1)
        }
        Verb::Retry | Verb::Snooze | Verb::Release | Verb::Reclaim => {
            edge.from.state() == State::Leased && edge.to == Place::Waiting
        }
        Verb::Succeed => edge.from.state() == State::Leased && edge.to == Place::Succeeded,
        Verb::Fail => edge.from.state() == State::Leased && edge.to == Place::Failed,
        Verb::Exhaust | Verb::DeadLetter => {
            edge.from.state() == State::Leased
                && matches!(edge.to, Place::Failed | Place::DeadLetter)
        }
        Verb::Cancel => edge.from.state() == State::Leased && edge.to == Place::Cancelled,
        Verb::Bury => edge.from == Place::Failed && edge.to == Place::DeadLetter,
        Verb::RequestCancel => edge.from == Place::Waiting && edge.to == Place::Cancelled,
        Verb::Reopen => edge.from == Place::Failed && edge.to == Place::Waiting,
        Verb::Replay => edge.from == Place::DeadLetter && edge.to == Place::Waiting,
    };
    (!fits).then_some("joins places this verb cannot join")
}
