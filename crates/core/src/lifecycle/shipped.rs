//! Owns the four lifecycles that every store knows.

use super::{Budget, BudgetScope, Edge, Lifecycle, Place, PublicNames, ResumeAt, Verb};
use crate::name::{LifecycleName, StageName, Topic};

const PER_JOB: Budget = Budget { scope: BudgetScope::Job, attempts: 5 };
const PER_STAGE: Budget = Budget { scope: BudgetScope::Stage, attempts: 5 };

fn draft(name: &'static str, stages: &[&'static str]) -> Lifecycle {
    let stages = stages.iter().map(|stage| StageName::literal(stage)).collect();
    Lifecycle::builder(LifecycleName::literal(name), stages).into_unchecked()
}

impl Lifecycle {
    /// `standard`: one stage, every verb. Spent budgets end in the dead letters.
    pub fn standard() -> Self {
        let mut it = draft("standard", &["running"]);
        it.budget = PER_JOB;
        it.list(Verb::Succeed, &[Place::Succeeded]);
        it.list(Verb::Fail, &[Place::Failed]);
        it.list(Verb::Exhaust, &[Place::DeadLetter]);
        it.list(Verb::DeadLetter, &[Place::DeadLetter]);
        it.list(Verb::Cancel, &[Place::Cancelled]);
        it.join(Place::Waiting, Verb::RequestCancel, Place::Cancelled);
        it.join(Place::Failed, Verb::Reopen, Place::Waiting);
        it.join(Place::DeadLetter, Verb::Replay, Place::Waiting);
        it
    }

    /// `work_queue`: queued, running, completed, failed. A terminal failure leaves a dead letter.
    pub fn work_queue() -> Self {
        let mut it = draft("work_queue", &["running"]);
        it.budget = PER_JOB;
        it.names = PublicNames {
            waiting: "queued".to_owned(),
            leased: None,
            succeeded: "completed".to_owned(),
            ..PublicNames::default()
        };
        it.list(Verb::Succeed, &[Place::Succeeded]);
        it.list(Verb::Fail, &[Place::Failed]);
        it.list(Verb::Exhaust, &[Place::Failed]);
        it
    }

    /// `transcode`: eight states, an event per transition, dead letters only by way of failed.
    pub fn transcode() -> Self {
        let mut it = draft("transcode", &["claimed", "fetching", "processing", "uploading"]);
        it.budget = PER_JOB;
        it.names =
            PublicNames { waiting: "queued".to_owned(), leased: None, ..PublicNames::default() };
        it.join(Place::Leased(3), Verb::Succeed, Place::Succeeded);
        it.list(Verb::Fail, &[Place::Failed]);
        it.list(Verb::Exhaust, &[Place::Failed]);
        it.list(Verb::DeadLetter, &[Place::Failed]);
        it.join(Place::Failed, Verb::Bury, Place::DeadLetter);
        it.join(Place::Failed, Verb::Reopen, Place::Waiting);
        it.events = Some(Topic::literal("transcode"));
        it.log = true;
        it
    }

    /// `review`: stages fetch, llm, notify, each with a budget of its own.
    pub fn review() -> Self {
        let mut it = draft("review", &["fetch", "llm", "notify"]);
        it.budget = PER_STAGE;
        it.resume = ResumeAt::FailedStage;
        it.names = PublicNames {
            waiting: "queued".to_owned(),
            waiting_again: Some("retryable_failed".to_owned()),
            leased: Some("in_progress".to_owned()),
            ..PublicNames::default()
        };
        it.join(Place::Leased(2), Verb::Succeed, Place::Succeeded);
        it.list(Verb::Fail, &[Place::Failed]);
        it.list(Verb::Exhaust, &[Place::DeadLetter]);
        it.list(Verb::DeadLetter, &[Place::DeadLetter]);
        it.join(Place::Failed, Verb::Reopen, Place::Waiting);
        it.join(Place::DeadLetter, Verb::Replay, Place::Waiting);
        it.log = true;
        it
    }

    fn list(&mut self, verb: Verb, to: &[Place]) {
        for stage in 0..u8::try_from(self.stages.len()).unwrap_or(u8::MAX) {
            for &to in to {
                self.join(Place::Leased(stage), verb, to);
            }
        }
    }

    fn join(&mut self, from: Place, verb: Verb, to: Place) {
        self.edges.push(Edge { from, verb, to });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::State;

    /// Proves: WQ-1
    #[test]
    fn every_shipped_lifecycle_passes_the_builder_again() {
        for lifecycle in Lifecycle::shipped() {
            let again = super::super::LifecycleBuilder::from_lifecycle(lifecycle.clone());
            assert_eq!(again.build().unwrap(), lifecycle);
        }
    }

    /// Proves: WQ-1
    #[test]
    fn transcode_lists_exactly_the_source_table() {
        let it = Lifecycle::transcode();
        let mut pairs: Vec<(String, String)> = it
            .edges
            .iter()
            .map(|e| (it.public_name(e.from, false).into(), it.public_name(e.to, false).into()))
            .collect();
        pairs.sort();
        pairs.dedup();
        let stages = ["claimed", "fetching", "processing", "uploading"];
        let mut expected: Vec<(String, String)> = vec![
            ("queued".into(), "claimed".into()),
            ("claimed".into(), "fetching".into()),
            ("fetching".into(), "processing".into()),
            ("processing".into(), "uploading".into()),
            ("uploading".into(), "succeeded".into()),
            ("failed".into(), "queued".into()),
            ("failed".into(), "dead_letter".into()),
        ];
        for stage in stages {
            expected.push((stage.into(), "queued".into()));
            expected.push((stage.into(), "failed".into()));
        }
        expected.sort();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn cancelled_is_reached_only_where_listed() {
        let reach = |it: Lifecycle| it.reaches(State::Cancelled);
        assert!(reach(Lifecycle::standard()));
        assert!(!reach(Lifecycle::work_queue()));
        assert!(!reach(Lifecycle::transcode()));
    }
}
