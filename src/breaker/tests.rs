//! Stories of one breaker, and long random ones against what the words of its rules say.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn policy() -> BreakerPolicy {
    BreakerPolicy {
        failure_threshold: 0.5,
        window: 60 * SECOND,
        cooldown: 30 * SECOND,
        min_samples: 4,
    }
}

fn end(breaker: &mut Breaker, now: Instant, failed: bool) {
    let leave = breaker.ask(now).unwrap();
    breaker.learn(now, leave, failed);
}

/// A breaker that opened at `now`.
fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::new(policy());
    (0..4).for_each(|_| end(&mut breaker, now, true));
    assert_eq!(breaker.ask(now), Err(30 * SECOND));
    breaker
}

/// Proves: CB-1
#[test]
fn opens_at_the_rate_and_not_before_enough_results() {
    let (mut breaker, begun) = (Breaker::new(policy()), crate::clock::now());
    for failed in [true, true, false] {
        end(&mut breaker, begun, failed);
        assert!(breaker.is_closed());
    }
    end(&mut breaker, begun, false);
    assert_eq!(breaker.ask(begun), Err(30 * SECOND), "two of four");
}

/// Proves: CB-1
#[test]
fn a_result_counts_for_the_window_only() {
    let (mut breaker, begun) = (Breaker::new(policy()), crate::clock::now());
    for _ in 0..3 {
        end(&mut breaker, begun, true);
    }
    end(&mut breaker, begun + 61 * SECOND, true);
    assert!(breaker.is_closed());
}

/// Proves: CB-1
#[test]
fn one_probe_decides_after_the_cooldown() {
    let begun = crate::clock::now();
    for failed in [true, false] {
        let mut breaker = opened(begun);
        assert_eq!(breaker.ask(begun + 29 * SECOND), Err(SECOND));
        let later = begun + 30 * SECOND;
        let probe = breaker.ask(later).unwrap();
        assert_eq!(breaker.ask(later), Err(SECOND), "the probe is on its way");
        breaker.learn(later, probe, failed);
        assert_eq!(breaker.ask(later).err(), failed.then_some(30 * SECOND));
    }
}

/// Proves: CB-1
#[test]
fn a_probe_that_was_given_up_is_sent_again() {
    let begun = crate::clock::now();
    let mut breaker = opened(begun);
    let later = begun + 30 * SECOND;
    let probe = breaker.ask(later).unwrap();
    breaker.forget(later, probe);
    assert!(breaker.ask(later).is_ok());
}

/// Proves: CB-1
#[test]
fn what_was_asked_before_it_opened_decides_nothing() {
    let begun = crate::clock::now();
    let mut breaker = Breaker::new(policy());
    let old = breaker.ask(begun).unwrap();
    (0..4).for_each(|_| end(&mut breaker, begun, true));
    let later = begun + 30 * SECOND;
    let probe = breaker.ask(later).unwrap();
    breaker.learn(later, old, false);
    assert!(breaker.is_half_open(), "an old success closes nothing");
    breaker.forget(later, old);
    assert!(breaker.is_half_open(), "an old request holds no permit");
    breaker.learn(later, probe, false);
    assert!(breaker.is_closed());
}

/// Proves: CB-1
#[test]
fn more_results_than_are_remembered_are_waited_for_where_it_takes_them() {
    let patient = BreakerPolicy { min_samples: 1_500, ..policy() };
    let (mut breaker, now) = (Breaker::new(patient), crate::clock::now());
    for _ in 0..1_499 {
        end(&mut breaker, now, true);
    }
    assert!(breaker.is_closed());
    end(&mut breaker, now, true);
    assert!(!breaker.is_closed());
}

#[derive(Clone, Debug)]
enum Act {
    Ask,
    /// Ends the request of this number, of those that are out.
    End(usize, bool),
    Forget(usize),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Ask),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(at, failed)| Act::End(at, failed)),
        1 => any::<usize>().prop_map(Act::Forget),
        2 => (0_u64..20_000).prop_map(Act::Wait),
    ]
}

/// What the rules say, in the plainest form: every result since the last change, never let go of.
struct Model {
    results: Vec<(Instant, bool)>,
    /// When it opened; `None` while closed.
    opened: Option<Instant>,
    probe: Option<Leave>,
}

impl Model {
    fn is_bad(&self, now: Instant) -> bool {
        let recent = |(at, _): &&(Instant, bool)| now.duration_since(*at) <= policy().window;
        let recent: Vec<_> = self.results.iter().filter(recent).collect();
        let failed = recent.iter().filter(|(_, failed)| *failed).count();
        recent.len() >= policy().min_samples && failed * 2 >= recent.len()
    }

    fn change(&mut self, opened: Option<Instant>) {
        (self.opened, self.probe) = (opened, None);
        self.results.clear();
    }
}

proptest! {
    /// Proves: CB-1
    #[test]
    fn it_does_what_the_rules_say_and_loses_no_permit(acts in proptest::collection::vec(act(), 1..400)) {
        let mut breaker = Breaker::new(policy());
        let mut model = Model { results: Vec::new(), opened: None, probe: None };
        let mut now = crate::clock::now();
        // Requests that are out, with the time of the model's opening when they were let through.
        let mut out: Vec<(Leave, bool)> = Vec::new();
        for act in acts {
            match act {
                Act::Wait(millis) => now += Duration::from_millis(millis),
                Act::Ask => {
                    let answer = breaker.ask(now);
                    let rested = model.opened.is_none_or(|at| now >= at);
                    prop_assert_eq!(answer.is_ok(), rested && model.probe.is_none());
                    if let Ok(leave) = answer {
                        let is_probe = model.opened.is_some();
                        model.probe = is_probe.then_some(leave);
                        out.push((leave, false));
                    }
                }
                Act::End(at, failed) if !out.is_empty() => {
                    let (leave, stale) = out.swap_remove(at % out.len());
                    breaker.learn(now, leave, failed);
                    let reopened = now + policy().cooldown;
                    if stale {
                    } else if model.opened.is_some() {
                        model.change(failed.then_some(reopened));
                        out.iter_mut().for_each(|(_, stale)| *stale = true);
                    } else {
                        model.results.push((now, failed));
                        if model.is_bad(now) {
                            model.change(Some(reopened));
                            out.iter_mut().for_each(|(_, stale)| *stale = true);
                        }
                    }
                }
                Act::Forget(at) if !out.is_empty() => {
                    let (leave, stale) = out.swap_remove(at % out.len());
                    breaker.forget(now, leave);
                    if !stale && model.opened.is_some() {
                        model.change(Some(now));
                    }
                }
                Act::End(..) | Act::Forget(_) => {}
            }
            prop_assert_eq!(breaker.is_closed(), model.opened.is_none());
            prop_assert_eq!(breaker.is_half_open(), model.probe.is_some());
        }
        // Whatever happened: once everything is given back and the cooldown over, somebody may ask.
        out.into_iter().for_each(|(leave, _)| breaker.forget(now, leave));
        prop_assert!(breaker.ask(now + policy().cooldown).is_ok());
    }
}
