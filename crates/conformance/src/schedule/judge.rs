//! Owns the judgement over a schedule: what was answered and what is stored must be what some order of
//! the acts one after the other gives, in which an act that says that it did nothing may be missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold_core::Fence;

use super::act::{Act, Said};
use super::ground::Ground;
use super::play::{Outcome, Turn, in_turn};
use crate::history::{Seen, faults};
use crate::invariants;
use crate::sweep::rows;

/// What acts one after the other give: the answers by session, and the tables.
struct Serial {
    order: Vec<Turn>,
    said: BTreeMap<usize, String>,
    rows: Vec<String>,
}

/// What every order of some acts gives, as far as it has been asked for.
#[derive(Default)]
pub(super) struct Judge {
    /// Who held the first job before.
    held_by: Option<Fence>,
    known: BTreeMap<Vec<Turn>, Serial>,
}

/// Every order of some sessions.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for (at, &first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(at);
        for mut order in orders(&rest) {
            order.insert(0, first);
            out.push(order);
        }
    }
    out
}

/// An order in which those that pass over locked rows do not see one of the jobs.
fn half_seen(order: &[usize], passes: impl Fn(usize) -> bool) -> Vec<Vec<Turn>> {
    let mut out = vec![Vec::new()];
    for &seat in order {
        let unseen: &[&[u8]] = if passes(seat) { &[&[], &[1], &[2], &[1, 2]] } else { &[&[]] };
        let longer = out.iter().flat_map(|so_far: &Vec<Turn>| {
            unseen.iter().map(|&unseen| {
                let mut turns = so_far.clone();
                turns.push(Turn { seat, unseen });
                turns
            })
        });
        out = longer.collect();
    }
    out.retain(|order| order.iter().any(|turn| !turn.unseen.is_empty()));
    out
}

impl Serial {
    fn fits(&self, outcome: &Outcome, rows: &[String]) -> bool {
        let same = |(seat, said): (usize, &Said)| match self.said.get(&seat) {
            Some(text) => *text == said.text,
            None => said.is_nothing,
        };
        outcome.said.iter().enumerate().all(same) && self.rows == rows
    }
}

impl Judge {
    pub(super) fn new(held_by: Option<Fence>) -> Self {
        Self { held_by, ..Self::default() }
    }

    async fn serial(
        &mut self,
        ground: &Arc<dyn Ground>,
        acts: &[Act],
        order: &[Turn],
    ) -> Result<&Serial, String> {
        if !self.known.contains_key(order) {
            let (said, dump) = in_turn(ground, acts, order).await?;
            let said = said.into_iter().map(|(seat, said)| (seat, said.text)).collect();
            let serial = Serial { order: order.to_vec(), said, rows: rows(&dump) };
            self.known.insert(order.to_vec(), serial);
        }
        self.known.get(order).ok_or_else(|| "no such order".to_owned())
    }

    /// What is wrong with a schedule's outcome.
    pub(super) async fn judge(
        &mut self,
        ground: &Arc<dyn Ground>,
        acts: &[Act],
        outcome: &Outcome,
    ) -> Result<(), String> {
        let broken = invariants::broken(&outcome.dump);
        if !broken.is_empty() {
            return Err(format!("the store is unsound:\n{}", broken.join("\n")));
        }
        let seen: Vec<Seen> = outcome.said.iter().flat_map(|said| said.seen.clone()).collect();
        let before = self.held_by.map(Seen::Claimed);
        let history: Vec<Seen> = before.into_iter().chain(seen).collect();
        let wrong = faults(&history, &[]);
        if !wrong.is_empty() {
            return Err(wrong.join("\n"));
        }
        self.fits_an_order(ground, acts, outcome).await
    }

    async fn fits_an_order(
        &mut self,
        ground: &Arc<dyn Ground>,
        acts: &[Act],
        outcome: &Outcome,
    ) -> Result<(), String> {
        let rows = rows(&outcome.dump);
        let all: Vec<usize> = (0..acts.len()).collect();
        let nothing: Vec<usize> =
            all.iter().copied().filter(|seat| outcome.said[*seat].is_nothing).collect();
        // Those that did nothing, any of which may be missing: first none of them, then more.
        let mut there = Vec::new();
        for left_out in 0..1_usize << nothing.len() {
            let missing = |seat: &usize| {
                nothing.iter().position(|it| it == seat).is_some_and(|at| left_out >> at & 1 == 1)
            };
            there.push(all.iter().copied().filter(|seat| !missing(seat)).collect::<Vec<_>>());
        }
        let passing = |seat: usize| !ground.is_exclusive() && acts[seat].passes_over();
        let orders: Vec<Vec<usize>> = there.iter().flat_map(|seats| orders(seats)).collect();
        let mut seen: Vec<Vec<Turn>> = orders
            .iter()
            .map(|order| order.iter().map(|&seat| Turn { seat, unseen: &[] }).collect())
            .collect();
        seen.extend(orders.iter().flat_map(|order| half_seen(order, passing)));
        for order in seen {
            if self.serial(ground, acts, &order).await?.fits(outcome, &rows) {
                return Ok(());
            }
        }
        Err(self.difference(outcome, &rows))
    }

    /// How the outcome differs from the order that comes nearest.
    fn difference(&self, outcome: &Outcome, rows: &[String]) -> String {
        let mut said = String::from("no order of the acts answers or stores this:\n");
        for (seat, it) in outcome.said.iter().enumerate() {
            said.push_str(&format!("session {seat}: {}\n", it.text));
        }
        let foreign = |serial: &&Serial| {
            rows.iter().filter(|row| !serial.rows.contains(row)).count()
                + serial.rows.iter().filter(|row| !rows.contains(row)).count()
        };
        let Some(serial) = self.known.values().min_by_key(foreign) else { return said };
        said.push_str(&format!("in the order {:?}: {:#?}\n", serial.order, serial.said));
        for row in rows.iter().filter(|row| !serial.rows.contains(row)) {
            said.push_str(&format!("  + {row}\n"));
        }
        for row in serial.rows.iter().filter(|row| !rows.contains(row)) {
            said.push_str(&format!("  - {row}\n"));
        }
        said
    }
}
