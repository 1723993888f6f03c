//! Owns schedules: two or three sessions do an act each, whose storage steps come in every order that
//! there is, or in one drawn by a seed. Refuses to know the engine, and what an act should answer: that
//! is what the acts answer one after the other.

mod act;
mod choice;
mod ground;
mod judge;
mod play;
mod position;
pub mod test;

use std::collections::BTreeSet;
use std::sync::Arc;

use leasehold_core::Timestamp;

pub use act::Act;
pub use choice::Choices;
pub use ground::{Ground, Seat};
pub use play::Grain;
pub use position::{POSITIONS, Position};

use crate::script::draw::Draw;
use judge::Judge;

/// How many sessions a ground has.
pub const SEATS: usize = 3;

/// How much is played from each beginning.
#[derive(Clone, Copy, Debug)]
pub struct Programme {
    /// Drawn orders of the steps for each pair of acts.
    pub drawn: u64,
    /// Triples of acts, drawn.
    pub triples: u64,
    /// Drawn orders of the steps for each triple.
    pub of_triple: u64,
    /// Every order of what two sessions send at once.
    pub flights: bool,
    /// Every order of two sessions' statements that leaves a session so many times before its end.
    pub switches: Option<usize>,
    /// Where the draws begin.
    pub seed: u64,
}

/// What was played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    /// Schedules.
    pub schedules: u64,
    /// Those that differ in an act or in the order of two steps.
    pub distinct: u64,
    /// Those in which a session had to wait for another's lock.
    pub waited: u64,
    /// Pairs and triples of acts.
    pub meetings: u64,
}

/// When the stores of a schedule begin.
pub fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

/// Plays a programme from one beginning.
///
/// # Errors
/// The first schedule whose outcome no order of its acts gives, with its steps and how to play it again.
pub async fn run(
    ground: &Arc<dyn Ground>,
    position: &Position,
    programme: Programme,
) -> Result<Played, String> {
    begin(ground, position).await?;
    let mut run = Run::new(ground, position);
    let acts = position.acts;
    for (at, &one) in acts.iter().enumerate() {
        for &other in acts.get(at..).unwrap_or_default() {
            run.pair([one, other], programme).await?;
        }
    }
    let mut draw = Draw::seeded(programme.seed);
    for _ in 0..programme.triples {
        let mut pick = || *draw.pick(acts).expect("an act");
        let three = [pick(), pick(), pick()];
        let seeds = (0..programme.of_triple).map(|number| programme.seed + number);
        let ways = seeds.map(Choices::drawn);
        run.meet(&three, ways, (Grain::Statement, usize::MAX)).await?;
    }
    run.played.distinct = u64::try_from(run.distinct.len()).unwrap_or(u64::MAX);
    Ok(run.played)
}

/// Plays one schedule that is known.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// At a position that there is none of.
pub async fn again(
    ground: &Arc<dyn Ground>,
    position: &str,
    acts: &[Act],
    ways: &[usize],
) -> Result<(), String> {
    let position = POSITIONS.iter().find(|it| it.name == position).expect("a position");
    begin(ground, position).await?;
    let mut run = Run::new(ground, position);
    run.meet(acts, [Choices::known(ways)], (Grain::Statement, usize::MAX)).await
}

async fn begin(ground: &Arc<dyn Ground>, position: &Position) -> Result<(), String> {
    let text = |error: leasehold_core::Error| error.to_string();
    ground.empty().await.map_err(text)?;
    for seat in ground.seats() {
        seat.session.set_free(true);
        seat.store.clock().ok_or("the clock is not manual")?.set(start());
    }
    let first = ground.seats()[0].clone();
    let (store, name) = (Arc::clone(&first.store), position.name);
    let prepared =
        first.runtime.spawn(async move { position::prepare(store.as_ref(), name).await });
    prepared.await.map_err(|error| error.to_string())?.map_err(text)?;
    for seat in ground.seats() {
        seat.store.clock().ok_or("the clock is not manual")?.set(start().plus(position.later));
    }
    ground.keep().await.map_err(text)
}

struct Run<'a> {
    ground: &'a Arc<dyn Ground>,
    position: &'a Position,
    played: Played,
    distinct: BTreeSet<Vec<String>>,
}

impl<'a> Run<'a> {
    fn new(ground: &'a Arc<dyn Ground>, position: &'a Position) -> Self {
        Self { ground, position, played: Played::default(), distinct: BTreeSet::new() }
    }

    fn judge(&self) -> Judge {
        Judge::new(self.position.is_claimed().then(act::fence))
    }

    async fn pair(&mut self, acts: [Act; 2], programme: Programme) -> Result<(), String> {
        let drawn = (0..programme.drawn).map(|number| Choices::drawn(programme.seed + number));
        self.meet(&acts, drawn, (Grain::Statement, usize::MAX)).await?;
        if programme.flights {
            self.every(&acts, (Grain::Flight, usize::MAX)).await?;
        }
        if let Some(switches) = programme.switches {
            self.every(&acts, (Grain::Statement, switches)).await?;
        }
        Ok(())
    }

    /// Plays acts in given ways.
    async fn meet(
        &mut self,
        acts: &[Act],
        ways: impl IntoIterator<Item = Choices>,
        how: (Grain, usize),
    ) -> Result<(), String> {
        let mut judge = self.judge();
        self.played.meetings += 1;
        for mut choices in ways {
            self.one(&mut judge, acts, &mut choices, how).await?;
        }
        Ok(())
    }

    /// Plays acts in every way there is.
    async fn every(&mut self, acts: &[Act], how: (Grain, usize)) -> Result<(), String> {
        let mut judge = self.judge();
        let mut next = Some(Choices::first());
        while let Some(mut choices) = next {
            self.one(&mut judge, acts, &mut choices, how).await?;
            next = choices.next();
        }
        Ok(())
    }

    async fn one(
        &mut self,
        judge: &mut Judge,
        acts: &[Act],
        choices: &mut Choices,
        how: (Grain, usize),
    ) -> Result<(), String> {
        let outcome = play::play(self.ground, acts, choices, how).await;
        let at = || format!("{} {acts:?} {:?} {how:?}", self.position.name, choices.taken());
        let outcome = outcome.map_err(|why| format!("{}: {why}", at()))?;
        let judged = judge.judge(self.ground, acts, &outcome).await;
        let steps = || outcome.steps.join(", ");
        judged.map_err(|why| format!("{}: {why}\nafter {}", at(), steps()))?;
        self.played.schedules += 1;
        self.played.waited += u64::from(outcome.waited);
        let mut key = outcome.steps;
        key.push(format!("{acts:?}"));
        self.distinct.insert(key);
        Ok(())
    }
}
