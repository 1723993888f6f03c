//! Owns the way through a tree of choices: drawn from a seed, or one after the other until each has been
//! gone. Refuses to know what is chosen.

use crate::script::draw::Draw;

/// One way: which of how many was taken at each fork.
#[derive(Debug, Default)]
pub struct Choices {
    given: Vec<usize>,
    taken: Vec<(usize, usize)>,
    draw: Option<Draw>,
}

impl Choices {
    /// The way that takes the first at each fork.
    pub fn first() -> Self {
        Self::default()
    }

    /// A way drawn from a seed.
    pub fn drawn(seed: u64) -> Self {
        Self { draw: Some(Draw::seeded(seed)), ..Self::default() }
    }

    /// A way that is known.
    pub fn known(given: &[usize]) -> Self {
        Self { given: given.to_vec(), ..Self::default() }
    }

    /// Takes one of so many.
    pub fn pick(&mut self, ways: usize) -> usize {
        let given = self.given.get(self.taken.len()).copied();
        let way = match (given, &mut self.draw) {
            (Some(way), _) => way.min(ways.saturating_sub(1)),
            (None, Some(draw)) => draw.below(ways),
            (None, None) => 0,
        };
        self.taken.push((way, ways));
        way
    }

    /// What was taken.
    pub fn taken(&self) -> Vec<usize> {
        self.taken.iter().map(|(way, _)| *way).collect()
    }

    /// The next way in the order of the tree, once this one has been gone to its end.
    pub fn next(mut self) -> Option<Self> {
        while let Some((way, ways)) = self.taken.pop() {
            if way + 1 < ways {
                let mut given: Vec<usize> = self.taken.iter().map(|(way, _)| *way).collect();
                given.push(way + 1);
                return Some(Self { given, ..Self::default() });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of two forks, the second of which has three ways behind the first's second.
    fn walk(choices: &mut Choices) {
        if choices.pick(2) == 1 {
            choices.pick(3);
        }
    }

    #[test]
    fn each_way_is_gone_once() {
        let (mut gone, mut next) = (Vec::new(), Some(Choices::first()));
        while let Some(mut choices) = next {
            walk(&mut choices);
            gone.push(choices.taken());
            next = choices.next();
        }
        assert_eq!(gone, [vec![0], vec![1, 0], vec![1, 1], vec![1, 2]]);
    }

    #[test]
    fn a_known_way_and_a_seed_are_gone_again() {
        let mut known = Choices::known(&[1, 2]);
        walk(&mut known);
        assert_eq!(known.taken(), [1, 2]);
        let again = || {
            let mut drawn = Choices::drawn(7);
            (0..9).for_each(|_| walk(&mut drawn));
            drawn.taken()
        };
        assert_eq!(again(), again());
    }
}
