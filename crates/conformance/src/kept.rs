//! Owns the seeds that failed once and are played for ever: `seeds.txt`, which the generators read. Refuses
//! to know what a generator makes of a seed.

/// The file, a line for each seed.
const FILE: &str = include_str!("../seeds.txt");

/// The generators that read it.
const GENERATORS: [&str; 3] = ["scripts", "interleavings", "races"];

/// The seeds of a generator, in the order of the file.
pub(crate) fn seeds(generator: &str) -> impl Iterator<Item = u64> {
    assert!(GENERATORS.contains(&generator), "{generator} is no generator");
    let own = lines(FILE).filter_map(move |line| {
        let (of, seed, _) = read(line);
        (of == generator).then_some(seed)
    });
    own.collect::<Vec<u64>>().into_iter()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The generator, the seed and the story of a line.
fn read(line: &str) -> (&str, u64, &str) {
    let mut words = line.splitn(3, ' ');
    let mut next = || words.next().filter(|word| !word.is_empty());
    let (Some(of), Some(seed), Some(story)) = (next(), next(), next()) else {
        panic!("seeds.txt: not a generator, a seed and what it found: {line:?}");
    };
    assert!(GENERATORS.contains(&of), "seeds.txt: no generator of that name: {line:?}");
    let Ok(seed) = seed.parse() else { panic!("seeds.txt: not a seed: {line:?}") };
    (of, seed, story)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_generator_has_its_seeds() {
        let read_by_all: usize = GENERATORS.into_iter().map(|of| seeds(of).count()).sum();
        assert_eq!(read_by_all, lines(FILE).count());
        let mut all: Vec<(&str, u64, &str)> = lines(FILE).map(read).collect();
        let number = all.len();
        all.sort_unstable();
        all.dedup_by_key(|(of, seed, _)| (*of, *seed));
        assert_eq!(all.len(), number, "a seed stands twice");
    }

    #[test]
    fn a_line_that_says_nothing_is_refused() {
        for line in ["scripts 7", "scripts seven it broke", "dreams 7 it broke", "scripts  7 x"] {
            assert!(std::panic::catch_unwind(|| read(line)).is_err(), "{line:?}");
        }
        assert_eq!(read("races 7 two holders of one job"), ("races", 7, "two holders of one job"));
    }
}
