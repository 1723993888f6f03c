//! Owns one schedule: each session's steps go on one at a time, as the choices say, and one that waits
//! for a lock is left to wait. Refuses to know what a step is.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::Dump;
use tokio::task::JoinHandle;

use super::act::{Act, Said, act};
use super::choice::Choices;
use super::ground::Ground;
use crate::clock;

/// How long a step may take before it is asked whether it waits for a lock.
const QUICK: Duration = Duration::from_millis(1);
/// How long anything may take.
const LONGEST: Duration = Duration::from_secs(60);

/// How much of a session goes on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// One statement, begin or commit.
    Statement,
    /// All that the session sends without having to wait for an answer.
    Flight,
}

/// What came of a schedule.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) said: Vec<Said>,
    pub(super) dump: Dump,
    /// The steps in their order, for people.
    pub(super) steps: Vec<String>,
    /// Whether a session had to wait for another's lock.
    pub(super) waited: bool,
}

struct Player {
    task: JoinHandle<Said>,
    blocked: bool,
    inside: bool,
}

pub(super) struct Play<'a> {
    ground: &'a Arc<dyn Ground>,
    players: Vec<Player>,
    steps: Vec<String>,
    waited: bool,
    /// The session of the last step.
    last: Option<usize>,
    /// How often a session may still be left that could have gone on.
    switches: usize,
    grain: Grain,
}

type Played<T = ()> = Result<T, String>;

/// Plays acts of as many sessions, from what was kept.
pub(super) async fn play(
    ground: &Arc<dyn Ground>,
    acts: &[Act],
    choices: &mut Choices,
    (grain, switches): (Grain, usize),
) -> Played<Outcome> {
    ground.restore().await.map_err(|error| error.to_string())?;
    let seats = ground.seats();
    let players = acts.iter().enumerate().map(|(seat, &what)| {
        let (session, ground) = (seats[seat].session.clone(), Arc::clone(ground));
        session.set_free(false);
        session.begin();
        let task = async move { session.run(act(ground, seat, what)).await };
        Player { task: seats[seat].runtime.spawn(task), blocked: false, inside: false }
    });
    let players = players.collect();
    let mut play =
        Play { ground, players, steps: Vec::new(), waited: false, last: None, switches, grain };
    let gone = play.go(choices).await;
    for seat in seats {
        seat.session.set_free(true);
    }
    gone.map_err(|why| format!("{why}, after {}", play.steps.join(", ")))?;
    play.end().await
}

/// One act in a row of acts, and the jobs whose rows it does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) seat: usize,
    pub(super) unseen: &'static [u8],
}

/// Plays acts one after the other, in an order; none is cut.
pub(super) async fn in_turn(
    ground: &Arc<dyn Ground>,
    acts: &[Act],
    order: &[Turn],
) -> Played<(Vec<(usize, Said)>, Dump)> {
    let text = |error: leasehold_core::Error| error.to_string();
    ground.restore().await.map_err(text)?;
    let mut said = Vec::new();
    for &Turn { seat, unseen } in order {
        for &job in unseen {
            ground.hide(job, true).await.map_err(text)?;
        }
        let task = ground.seats()[seat].runtime.spawn(act(Arc::clone(ground), seat, acts[seat]));
        said.push((seat, task.await.map_err(|error| error.to_string())?));
        for &job in unseen {
            ground.hide(job, false).await.map_err(text)?;
        }
    }
    Ok((said, ground.dump().await.map_err(text)?))
}

impl Play<'_> {
    async fn go(&mut self, choices: &mut Choices) -> Played {
        for seat in 0..self.players.len() {
            self.settle(seat).await?;
        }
        loop {
            let ready = self.ready();
            if ready.is_empty() {
                if (0..self.players.len()).all(|seat| self.session(seat).is_over()) {
                    return Ok(());
                }
                self.wait_for_any().await?;
                continue;
            }
            let at = self.choose(&ready, choices);
            self.step(ready[at]).await?;
            for seat in 0..self.players.len() {
                if self.players[seat].blocked {
                    self.settle(seat).await?;
                }
            }
        }
    }

    fn session(&self, seat: usize) -> &leasehold_core::failpoint::Session {
        &self.ground.seats()[seat].session
    }

    /// The sessions that can go on; the last one first.
    fn ready(&self) -> Vec<usize> {
        let someone_inside = |but: usize| {
            let mut others = self.players.iter().enumerate();
            others
                .any(|(seat, player)| seat != but && player.inside && !self.session(seat).is_over())
        };
        let can = |seat: &usize| {
            let session = self.session(*seat);
            let held = self.ground.is_exclusive()
                && session.next() == Some("begin")
                && someone_inside(*seat);
            session.is_still() && !session.is_over() && !held
        };
        let mut ready: Vec<usize> = (0..self.players.len()).filter(can).collect();
        ready.sort_by_key(|seat| Some(*seat) != self.last);
        ready
    }

    fn choose(&mut self, ready: &[usize], choices: &mut Choices) -> usize {
        let goes_on = self.last.is_some() && ready.first() == self.last.as_ref();
        let ways = if goes_on && self.switches == 0 { 1 } else { ready.len() };
        let at = if ways == 1 { 0 } else { choices.pick(ways) };
        if goes_on && at > 0 {
            self.switches = self.switches.saturating_sub(1);
        }
        self.last = ready.get(at).copied();
        at
    }

    async fn step(&mut self, seat: usize) -> Played {
        let session = self.session(seat).clone();
        let many = if self.grain == Grain::Flight { session.waiting() } else { 1 };
        for _ in 0..many {
            let Some(name) = session.allow() else { break };
            self.steps.push(format!("{seat} {name}"));
            match name {
                "begin" => self.players[seat].inside = true,
                "commit" => self.players[seat].inside = false,
                _ => {}
            }
        }
        self.settle(seat).await
    }

    /// Waits until a session is still, over, or known to wait for a lock.
    async fn settle(&mut self, seat: usize) -> Played {
        let session = self.session(seat).clone();
        let began = clock::now();
        loop {
            if tokio::time::timeout(QUICK, session.still()).await.is_ok() {
                self.players[seat].blocked = false;
                return Ok(());
            }
            if self.ground.waits(seat).await && !session.is_still() {
                if !self.players[seat].blocked {
                    self.steps.push(format!("{seat} waits"));
                }
                (self.players[seat].blocked, self.waited) = (true, true);
                return Ok(());
            }
            if clock::since(began) > LONGEST {
                return Err(format!("session {seat} neither goes on nor waits for a lock"));
            }
        }
    }

    /// All that are left wait for each other: the engine has to end that.
    async fn wait_for_any(&mut self) -> Played {
        let began = clock::now();
        while clock::since(began) < LONGEST {
            for seat in 0..self.players.len() {
                self.settle(seat).await?;
            }
            let over = (0..self.players.len()).all(|seat| self.session(seat).is_over());
            if over || !self.ready().is_empty() {
                return Ok(());
            }
        }
        Err("all sessions wait for each other".to_owned())
    }

    async fn end(self) -> Played<Outcome> {
        let mut said = Vec::with_capacity(self.players.len());
        for player in self.players {
            said.push(player.task.await.map_err(|error| error.to_string())?);
        }
        let dump = self.ground.dump().await.map_err(|error| error.to_string())?;
        Ok(Outcome { said, dump, steps: self.steps, waited: self.waited })
    }
}
