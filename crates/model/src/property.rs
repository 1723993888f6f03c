//! Owns what must always hold, by name. Each rule is broken by a step, so the world remembers which
//! rules its steps broke; the properties read that memory.

use stateright::Property;

use crate::{Ended, OnFailure, Protocol, Row};

/// The rules that were broken on the way here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken(u16);

impl Broken {
    pub(crate) const OWNER: u16 = 1;
    pub(crate) const LEASE: u16 = 1 << 1;
    pub(crate) const EPOCH: u16 = 1 << 2;
    pub(crate) const ONCE: u16 = 1 << 3;
    pub(crate) const THEFT: u16 = 1 << 4;
    pub(crate) const RISEN: u16 = 1 << 5;
    pub(crate) const TRUTH: u16 = 1 << 6;
    pub(crate) const HELD: u16 = 1 << 7;
    pub(crate) const ORDER: u16 = 1 << 8;
    pub(crate) const BUDGET: u16 = 1 << 9;
    pub(crate) const MORE: u16 = 1 << 10;
    pub(crate) const EARLY: u16 = 1 << 11;

    pub(crate) fn mark(&mut self, rule: u16, broken: bool) {
        if broken {
            self.0 |= rule;
        }
    }

    /// Whether no rule is broken.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What must always hold.
pub fn always() -> Vec<Property<Protocol>> {
    let always = Property::<Protocol>::always;
    vec![
        always("only the owner of a job writes to it", |_, w| w.broken.0 & Broken::OWNER == 0),
        always("nothing is written after the lease's end", |_, w| w.broken.0 & Broken::LEASE == 0),
        always("no fence of an earlier epoch writes", |_, w| w.broken.0 & Broken::EPOCH == 0),
        always("a claim is settled at most once", |_, w| w.broken.0 & Broken::ONCE == 0),
        always("no lease is taken before its end", |_, w| w.broken.0 & Broken::THEFT == 0),
        always("an ended job stays ended", |_, w| w.broken.0 & Broken::RISEN == 0),
        always("a success that is told has happened", |_, w| w.broken.0 & Broken::TRUTH == 0),
        always("a claim that is told is held", |_, w| w.broken.0 & Broken::HELD == 0),
        always("effects outside go in the order of claims", |_, w| w.broken.0 & Broken::ORDER == 0),
        always("the budget is kept", |_, w| w.broken.0 & Broken::BUDGET == 0),
        always("a repeated claim holds no more than it asked for", |_, w| {
            w.broken.0 & Broken::MORE == 0
        }),
        always("no job is begun before what it waits for is over", |_, w| {
            w.broken.0 & Broken::EARLY == 0
        }),
        always("no job waits for one that is over", |model, w| {
            let [parent, child] = &w.store.rows;
            !child.held || !parent.is_over() || model.returns(parent)
        }),
        always("a job is cancelled only after a bad end", |model, w| {
            let [parent, child] = &w.store.rows;
            let may = model.waits != Some(OnFailure::Run) && parent.badly;
            child.state != Ended::Cancelled || may
        }),
        always("an acknowledged settlement stands", |_, w| {
            (0..crate::JOBS).all(|job| {
                let (told, kept) = (w.told[job], w.store.rows[job].said);
                (0..8).all(|ghost| {
                    let told = Row::said_by(told, ghost);
                    told == 0 || told == Row::said_by(kept, ghost)
                })
            })
        }),
    ]
}
