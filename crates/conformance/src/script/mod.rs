//! Owns differential scripts: one random script of verbs, played step by step on several stores.
//! Any difference in a reply or in what is stored fails, names its seed and shrinks. Refuses to know
//! what is right: stores that agree pass, whatever they agree on; the scenarios say what is right.

pub(crate) mod draw;
mod letters;
mod make;
mod records;
mod request;
mod table;

use std::fmt;
use std::sync::Arc;

use leasehold_core::Result;
use leasehold_core::lab::LabStore;
use libtest_mimic::{Failed, Trial};

use crate::Harness;
use draw::Draw;
use request::Request;
use table::Table;

/// How often the stored tables are compared in the middle of a script.
const DUMP_EVERY: usize = 10;
/// How many shorter scripts are tried to explain a failure.
const SHRINK_MAX: usize = 300;

/// Where two stores part.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The steps before, and the step at which they part.
    pub steps: Vec<String>,
    /// What each store says.
    pub said: Vec<(&'static str, String)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "{at:3}  {step}")?;
        }
        self.said.iter().try_for_each(|(name, said)| writeln!(f, "{name}: {said}"))
    }
}

/// Plays the script of a seed on fresh stores of each harness.
///
/// # Errors
/// Why the stores part, with the shortest script found that shows it.
pub async fn compare(
    harnesses: &[Arc<dyn Harness>],
    seed: u64,
    steps: usize,
) -> std::result::Result<(), String> {
    Ground::new(harnesses).compare(seed, steps).await
}

/// One trial per hundred scripts, named by their seeds, and one for each seed that is kept.
///
/// Proves: PAR-1, PAR-2
pub fn trials(harnesses: &[Arc<dyn Harness>], scripts: u64, steps: usize) -> Vec<Trial> {
    let names: Vec<&str> = harnesses.iter().map(|harness| harness.name()).collect();
    let trial = |from: u64| {
        let harnesses = harnesses.to_vec();
        let to = (from + 100).min(scripts);
        let name = format!("{}::scripts_{from}_to_{to}_agree", names.join("_and_"));
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut ground = Ground::new(&harnesses);
                for seed in from..to {
                    ground.compare(seed, steps).await.map_err(Failed::from)?;
                }
                Ok(())
            })
        })
    };
    let kept = crate::kept::seeds("scripts").map(|seed| {
        let harnesses = harnesses.to_vec();
        let name = format!("{}::kept_script_{seed}_agrees", names.join("_and_"));
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(compare(&harnesses, seed, steps)).map_err(Failed::from)
        })
    });
    (0..scripts).step_by(100).map(trial).chain(kept).collect()
}

/// The harnesses, and the stores that were played on last.
struct Ground<'a> {
    harnesses: &'a [Arc<dyn Harness>],
    last: Vec<Arc<dyn LabStore>>,
}

impl<'a> Ground<'a> {
    fn new(harnesses: &'a [Arc<dyn Harness>]) -> Self {
        Self { harnesses, last: Vec::new() }
    }

    async fn compare(&mut self, seed: u64, steps: usize) -> std::result::Result<(), String> {
        let mut draw = Draw::seeded(seed);
        let script: Vec<u64> = (0..steps).map(|_| draw.seed()).collect();
        let Err(first) = self.play(&script).await else { return Ok(()) };
        let (script, found) = self.shrink(script, first).await;
        Err(format!("seed {seed}, {} of {steps} steps:\n{found}", script.len()))
    }

    /// Drops steps, many at once and then one by one, as long as the stores still part.
    async fn shrink(
        &mut self,
        mut script: Vec<u64>,
        mut found: Difference,
    ) -> (Vec<u64>, Difference) {
        let mut tries = 0;
        script.truncate(found.steps.len());
        let mut size = script.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < script.len() && tries < SHRINK_MAX {
                let mut shorter = script.clone();
                shorter.drain(at..(at + size).min(script.len()));
                tries += 1;
                match self.play(&shorter).await {
                    Err(again) => (script, found) = (shorter, again),
                    Ok(()) => at += size,
                }
            }
            size /= 2;
        }
        (script, found)
    }

    /// Empty stores of each harness.
    async fn stores(&mut self) -> Vec<(&'static str, Arc<dyn LabStore>)> {
        let mut last = std::mem::take(&mut self.last).into_iter();
        let mut stores = Vec::new();
        for harness in self.harnesses {
            let opened = harness.anew(last.next()).await;
            let store = opened.unwrap_or_else(|error| panic!("{}: {error}", harness.name()));
            self.last.push(Arc::clone(&store));
            stores.push((harness.name(), store));
        }
        stores
    }

    async fn play(&mut self, script: &[u64]) -> std::result::Result<(), Difference> {
        let stores = self.stores().await;
        let mut table = Table::default();
        let mut steps = Vec::new();
        for (at, seed) in script.iter().enumerate() {
            let request = Request::draw(&mut Draw::seeded(*seed), &table);
            steps.push(format!("{request:?}"));
            let mut said = Vec::new();
            for (name, store) in &stores {
                said.push((*name, request.play(&**store, &mut table).await));
                table.take_turn();
            }
            table.end_turns();
            part(&steps, said)?;
            if at % DUMP_EVERY == DUMP_EVERY - 1 || at + 1 == script.len() {
                same_tables(&steps, &stores).await?;
            }
        }
        Ok(())
    }
}

fn part(
    steps: &[String],
    said: Vec<(&'static str, String)>,
) -> std::result::Result<(), Difference> {
    match said.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        true => Ok(()),
        false => Err(Difference { steps: steps.to_vec(), said }),
    }
}

async fn same_tables(
    steps: &[String],
    stores: &[(&'static str, Arc<dyn LabStore>)],
) -> std::result::Result<(), Difference> {
    let mut dumps = Vec::new();
    for (name, store) in stores {
        let dump: Result<_> = store.dump().await;
        dumps.push((*name, dump.unwrap_or_else(|error| panic!("{name}: {error}"))));
    }
    for pair in dumps.windows(2) {
        let difference = pair[0].1.difference(&pair[1].1);
        if !difference.is_empty() {
            let said =
                vec![(pair[0].0, "(-)".to_owned()), (pair[1].0, format!("(+)\n{difference}"))];
            return Err(Difference { steps: steps.to_vec(), said });
        }
    }
    let (name, dump) = &dumps[0];
    let broken = crate::invariants::broken(dump);
    if !broken.is_empty() {
        let said = vec![(*name, format!("left unsound:\n{}", broken.join("\n")))];
        return Err(Difference { steps: steps.to_vec(), said });
    }
    Ok(())
}
