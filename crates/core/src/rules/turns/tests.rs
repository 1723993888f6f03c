use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::name::QueueName;

fn queue() -> QueueRow {
    QueueRow::new(QueueName::default_queue(), Timestamp::MIN)
}

fn name(number: usize) -> PartitionName {
    PartitionName::new(format!("{number:03}")).expect("a name")
}

/// What is due in each partition, and the ring's place; a claim takes from it as engines do.
#[derive(Clone, Debug)]
struct Ring {
    spread: usize,
    due: BTreeMap<Option<PartitionName>, usize>,
    before: Option<TurnRow>,
}

impl Ring {
    /// How many each partition gave.
    fn claim(&mut self, queue: &QueueRow, want: usize) -> BTreeMap<Option<PartitionName>, usize> {
        let now = Timestamp::MIN;
        let due = self.due.iter().filter(|(_, due)| **due > 0);
        let found: Vec<Waiting> = due
            .map(|(partition, _)| Waiting { partition: partition.clone(), leased: 0, starts: None })
            .collect();
        let found = in_turn(found, self.before.as_ref(), |it| it.partition.as_ref());
        let mut ring = found.into_iter();
        let mut turns = Turns::spread(now, queue, (want, self.spread), self.before.take());
        let mut given = BTreeMap::new();
        loop {
            while turns.lacks() > 0 {
                match ring.next() {
                    Some(next) => turns.find(next),
                    None => turns.found_all(),
                }
            }
            let asks = turns.asks();
            if asks.is_empty() {
                break;
            }
            for ask in asks {
                let had = given.entry(ask.partition.clone()).or_insert(0);
                assert_eq!(*had, ask.had, "what it gave before");
                let due = self.due.get_mut(&ask.partition).expect("known");
                let takes = ask.limit.min(turns.left()).min(*due);
                (*had, *due) = (*had + takes, *due - takes);
                let at = turns.by_name[&ask.partition];
                turns.turns[at].taken += takes;
            }
        }
        self.before = turns.next().or(turns.before);
        given
    }
}

fn rings() -> impl Strategy<Value = Ring> {
    let due = prop::collection::btree_map(0_usize..9, 1_usize..40, 1..9);
    (due, 1_usize..9).prop_map(|(due, spread)| {
        let place = |number| (number > 0).then(|| name(number));
        let due = due.into_iter().map(|(at, due)| (place(at), due)).collect();
        Ring { spread, due, before: None }
    })
}

proptest! {
    /// A claim gives all that is wanted while that much is due, and never more.
    ///
    /// Proves: WQ-3, QUE-8
    #[test]
    fn nothing_due_is_left_while_more_is_wanted(mut ring in rings(), want in 1_usize..60) {
        let mut due: usize = ring.due.values().sum();
        while due > 0 {
            // As many partitions are looked at as jobs are wanted, so that is always enough.
            let given: usize = ring.claim(&queue(), want).values().sum();
            prop_assert_eq!(given, due.min(want));
            due -= given;
        }
    }

    /// With D partitions due, each has its turn within D / m claims, rounded up: m is how many jobs are
    /// claimed, and half the spread where those are more than the spread.
    ///
    /// Proves: WQ-3, QUE-8
    #[test]
    fn nobody_is_passed_over_for_longer_than_stated(
        mut ring in rings(), wants in prop::collection::vec(1_usize..12, 1..40),
    ) {
        let mut passed: BTreeMap<Option<PartitionName>, usize> = BTreeMap::new();
        for want in wants {
            let due = ring.due.clone();
            let given = ring.claim(&queue(), want);
            for (partition, _) in due.iter().filter(|(_, due)| **due > 0) {
                let passed = passed.entry(partition.clone()).or_insert(0);
                match given.get(partition) {
                    Some(&given) if given > 0 => *passed = 0,
                    // Each claim that passes it by gives at least so many others their turn.
                    _ => *passed += least(want, ring.spread),
                }
                prop_assert!(*passed < due.len(), "{partition:?} was passed over");
            }
        }
    }
}

/// How many partitions have their turn in a claim, if so many have a due job.
fn least(want: usize, spread: usize) -> usize {
    if want <= spread { want } else { spread.div_ceil(2) }
}

/// Proves: WQ-3, QUE-8
#[test]
fn the_remainder_goes_round() {
    let mut ring = Ring {
        spread: 9,
        due: (1..=3).map(|number| (Some(name(number)), 99)).collect(),
        before: None,
    };
    let mut sums = BTreeMap::new();
    for _claim in 0..3 {
        for (partition, given) in ring.claim(&queue(), 4) {
            *sums.entry(partition).or_insert(0) += given;
        }
    }
    assert!(sums.values().all(|sum| *sum == 4), "{sums:?}");
}

/// Proves: WQ-9, QUE-8
#[test]
fn room_is_the_smaller_of_leases_and_starts() {
    let mut queue = queue();
    queue.partition_limit = Some(5);
    let rate = StartRate::new(crate::record::Rate::per_second(1), 3).expect("a rate");
    queue.partition_rate = Some(rate);
    let room = |leased| {
        let found = Waiting { partition: Some(name(1)), leased, starts: None };
        found.room(&queue, Timestamp::MIN)
    };
    assert_eq!([room(0), room(2), room(4), room(5), room(9)], [3, 3, 1, 0, 0]);
    let plain = Waiting { partition: None, leased: 0, starts: None };
    assert_eq!(plain.room(&queue, Timestamp::MIN), usize::MAX);
}

/// No more is read than is lacking, and twice as many after each step in vain.
///
/// Proves: QUE-8
#[test]
fn steps_around_the_ring_grow() {
    let before = TurnRow { queue: queue().name, turn: 1, partition: Some(name(5)) };
    let mut ring = super::Ring::new(Some(&before));
    let mut steps = Vec::new();
    for lacks in [1, 1, 1, 7, 1] {
        let Some((Stretch::Named { after, up_to }, limit)) = ring.next(lacks) else { break };
        steps.push((after, limit));
        ring.put_back(name(5 + steps.len()), up_to);
    }
    let after = |number| Some(name(number));
    assert_eq!(steps, [(after(5), 1), (after(6), 2), (after(7), 4), (after(8), 8), (after(9), 16)]);
    let rest: Vec<_> = std::iter::from_fn(|| Some(ring.next(1)?.0)).collect();
    let named = |after, up_to| Stretch::Named { after, up_to };
    assert_eq!(rest, [named(after(10), None), Stretch::Without, named(None, after(5))]);
}
