//! Owns the comparison with the lines of an earlier run, or of another program that prints the same
//! ones. Knows which figure of a workload counts.

use std::path::Path;

use leasehold::{Error, ErrorKind, Result};
use serde::Serialize;

use super::report::{Line, rounded};

/// Ours divided by another's.
#[derive(Debug, Serialize)]
pub struct Ratio<'a> {
    engine: &'a str,
    workload: &'a str,
    /// The figure that was compared.
    figure: &'static str,
    of: &'a str,
    to: &'a str,
    ratio: f64,
}

impl Ratio<'_> {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn to_text(&self) -> String {
        format!(
            "{:<8} {:<14} {:>7} {:.3} of {}",
            self.engine, self.workload, self.figure, self.ratio, self.to
        )
    }
}

/// Reads JSON lines; lines of other shapes with a `ratio` are passed over.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let unusable = |why: String| {
        Error::new(ErrorKind::Invalid, "bench", format!("--compare {}: {why}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let mut lines = Vec::new();
    for (at, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let is_ratio = |text: &str| {
            let read = serde_json::from_str::<serde_json::Value>(text);
            read.is_ok_and(|value| value.get("ratio").is_some())
        };
        match serde_json::from_str(text) {
            Ok(line) => lines.push(line),
            Err(_) if is_ratio(text) => {}
            Err(error) => return Err(unusable(format!("line {}: {error}", at + 1))),
        }
    }
    if lines.is_empty() {
        return Err(unusable("the file holds no line of a bench".to_owned()));
    }
    Ok(lines)
}

/// Holds a line against all others of the same engine and workload.
pub fn ratios<'a>(line: &'a Line, others: &'a [Line]) -> Vec<Ratio<'a>> {
    let same = |it: &&Line| it.engine == line.engine && it.workload == line.workload;
    let ratio = |other: &'a Line| {
        let (figure, ours) = figure(line)?;
        let (other_figure, theirs) = self::figure(other)?;
        (figure == other_figure && theirs != 0.0).then(|| Ratio {
            engine: &line.engine,
            workload: &line.workload,
            figure,
            of: &line.peer,
            to: &other.peer,
            ratio: rounded(ours / theirs),
        })
    };
    others.iter().filter(same).filter_map(ratio).collect()
}

/// The figure of a workload that counts, and its name.
pub fn figure(line: &Line) -> Option<(&'static str, f64)> {
    if let Some(bytes) = line.bytes {
        let kib = u32::try_from(bytes / 1_024).unwrap_or(u32::MAX);
        return Some(("MiB", f64::from(kib) / 1_024.0));
    }
    match line.workload.get(..2) {
        Some("w4") => line.p50_ms.map(|ms| ("p50 ms", ms)),
        Some("w7") => line.p99_ms.map(|ms| ("p99 ms", ms)),
        _ => Some(("jobs/s", line.rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: &str, workload: &str, rate: f64, p50: f64) -> Line {
        let text = format!(
            r#"{{"peer":"{peer}","engine":"sqlite","workload":"{workload}","n":1,"seconds":1.0,
            "rate":{rate},"p50_ms":{p50},"p99_ms":null}}"#
        );
        serde_json::from_str(&text).expect("a line")
    }

    /// Rates are compared as rates, pick-ups by their median; other workloads are left alone.
    #[test]
    fn each_workload_by_the_figure_that_counts() {
        let others = [line("raw", "w1", 400.0, 8.0), line("raw", "w4_from_call", 400.0, 8.0)];
        let ours = line("leasehold", "w1", 300.0, 2.0);
        let found: Vec<f64> = ratios(&ours, &others).iter().map(|it| it.ratio).collect();
        assert_eq!(found, [0.75]);
        let ours = line("leasehold", "w4_from_call", 300.0, 2.0);
        let found: Vec<f64> = ratios(&ours, &others).iter().map(|it| it.ratio).collect();
        assert_eq!(found, [0.25]);
        assert!(ratios(&line("leasehold", "w3", 1.0, 1.0), &others).is_empty());
    }
}
