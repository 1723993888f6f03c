//! Owns lifecycles: which verb moves a job from where to where, under which public names and which
//! budget, as data. The checks, the matrix test and the charts all come from this one table. Knows
//! nothing of rows or engines.

mod builder;
mod shipped;
mod state;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use builder::LifecycleBuilder;
pub use state::{Place, State, Verb};

use crate::error::{Error, ErrorKind, Result};
use crate::name::{LifecycleName, StageName, Topic};

/// One allowed move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Where the job is.
    pub from: Place,
    /// What moves it.
    pub verb: Verb,
    /// Where it lands.
    pub to: Place,
}

/// Whose attempts a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// All of a job's attempts together.
    Job,
    /// Each stage's attempts by themselves.
    Stage,
}

/// How many attempts a job (or each of its stages) has, the first included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Budget {
    /// Whose attempts are counted.
    pub scope: BudgetScope,
    /// How many there are.
    pub attempts: u16,
}

/// Where a job begins again after a retry or a lapsed lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeAt {
    /// At the first stage.
    FirstStage,
    /// At the stage that failed, with its checkpoint.
    FailedStage,
}

/// The public names of a lifecycle's states.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PublicNames {
    /// A waiting job.
    pub waiting: String,
    /// A waiting job that has failed before, where that has a name of its own.
    pub waiting_again: Option<String>,
    /// A leased job; `None`: the name of its stage.
    pub leased: Option<String>,
    /// A job that ended well.
    pub succeeded: String,
    /// A failed job.
    pub failed: String,
    /// A dead-lettered job.
    pub dead_letter: String,
    /// A cancelled job.
    pub cancelled: String,
}

impl Default for PublicNames {
    fn default() -> Self {
        let name = |state: State| state.as_str().to_owned();
        Self {
            waiting: name(State::Waiting),
            waiting_again: None,
            leased: Some(name(State::Leased)),
            succeeded: name(State::Succeeded),
            failed: name(State::Failed),
            dead_letter: name(State::DeadLetter),
            cancelled: name(State::Cancelled),
        }
    }
}

/// How jobs of one sort move: stages, edges, names, budget. Immutable once registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    pub(crate) name: LifecycleName,
    pub(crate) revision: u32,
    pub(crate) stages: Vec<StageName>,
    pub(crate) names: PublicNames,
    pub(crate) edges: Vec<Edge>,
    pub(crate) budget: Budget,
    pub(crate) resume: ResumeAt,
    pub(crate) events: Option<Topic>,
    pub(crate) log: bool,
}

impl Lifecycle {
    /// Begins a definition with its stages in order.
    pub fn builder(name: LifecycleName, stages: Vec<StageName>) -> LifecycleBuilder {
        LifecycleBuilder::new(name, stages)
    }

    /// The lifecycles that every store knows: `standard`, `work_queue`, `transcode`, `review`.
    pub fn shipped() -> Vec<Self> {
        vec![Self::standard(), Self::work_queue(), Self::transcode(), Self::review()]
    }

    /// The name.
    pub fn name(&self) -> &LifecycleName {
        &self.name
    }

    /// The revision, from 1.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// The stages in order.
    pub fn stages(&self) -> &[StageName] {
        &self.stages
    }

    /// The name of a stage by its ordinal.
    pub fn stage_name(&self, ordinal: u8) -> Option<&StageName> {
        self.stages.get(usize::from(ordinal))
    }

    /// The ordinal of a stage by its name.
    pub fn stage_ordinal(&self, name: &StageName) -> Option<u8> {
        self.stages.iter().position(|stage| stage == name).and_then(|at| u8::try_from(at).ok())
    }

    /// Every allowed move.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The budget.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Where a job begins again.
    pub fn resume_at(&self) -> ResumeAt {
        self.resume
    }

    /// The topic of the events that every transition makes, where it makes any.
    pub fn events_topic(&self) -> Option<&Topic> {
        self.events.as_ref()
    }

    /// Whether a transition log is kept unless the queue says otherwise.
    pub fn logs_by_default(&self) -> bool {
        self.log
    }

    /// Where `verb` takes a job from `from`; `None` when the lifecycle does not list it.
    pub fn after(&self, from: Place, verb: Verb) -> Option<Place> {
        self.edges.iter().find(|edge| edge.from == from && edge.verb == verb).map(|edge| edge.to)
    }

    /// Where `verb` takes a job from `from`.
    ///
    /// # Errors
    /// `IllegalTransition` naming from, verb and lifecycle when it is not listed.
    pub fn take(&self, operation: &'static str, from: Place, verb: Verb) -> Result<Place> {
        self.after(from, verb).ok_or_else(|| {
            let message = format!(
                "lifecycle {} lists no {verb} from {}",
                self.name,
                self.public_name(from, false)
            );
            Error::new(ErrorKind::IllegalTransition, operation, message)
        })
    }

    /// The public name of a place; `again` for a waiting job that has failed before.
    pub fn public_name(&self, place: Place, again: bool) -> &str {
        match place {
            Place::Waiting if again => {
                self.names.waiting_again.as_deref().unwrap_or(&self.names.waiting)
            }
            Place::Waiting => &self.names.waiting,
            Place::Leased(stage) => match (&self.names.leased, self.stage_name(stage)) {
                (None, Some(name)) => name.as_str(),
                (Some(name), _) => name,
                (None, None) => "leased",
            },
            Place::Succeeded => &self.names.succeeded,
            Place::Failed => &self.names.failed,
            Place::DeadLetter => &self.names.dead_letter,
            Place::Cancelled => &self.names.cancelled,
        }
    }

    /// Whether any edge leads to this state.
    pub fn reaches(&self, state: State) -> bool {
        self.edges.iter().any(|edge| edge.to.state() == state)
    }

    /// The stored form.
    ///
    /// # Errors
    /// `Invalid` when it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| {
            Error::new(ErrorKind::Invalid, "lifecycle", "cannot be written").with_source(e)
        })
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when it is not one.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| {
            Error::new(ErrorKind::Corrupt, "lifecycle", "cannot be read").with_source(e)
        })
    }

    /// SHA-256 of the stored form: two definitions are the same when this is.
    ///
    /// # Errors
    /// `Invalid` when it cannot be written as JSON.
    pub fn hash(&self) -> Result<[u8; 32]> {
        Ok(Sha256::digest(self.to_json()?.as_bytes()).into())
    }

    /// The state chart in mermaid's language, one line an edge.
    pub fn mermaid(&self) -> String {
        let place = |p: Place| self.public_name(p, false).replace(' ', "_");
        let mut out = format!("stateDiagram-v2\n    [*] --> {}\n", place(Place::Waiting));
        let mut seen: Vec<(String, String, Vec<&str>)> = Vec::new();
        for edge in &self.edges {
            let (from, to) = (place(edge.from), place(edge.to));
            match seen.iter_mut().find(|(f, t, _)| *f == from && *t == to) {
                Some((_, _, verbs)) if verbs.contains(&edge.verb.as_str()) => {}
                Some((_, _, verbs)) => verbs.push(edge.verb.as_str()),
                None => seen.push((from, to, vec![edge.verb.as_str()])),
            }
        }
        for (from, to, verbs) in seen {
            out.push_str(&format!("    {from} --> {to}: {}\n", verbs.join(", ")));
        }
        out
    }
}
