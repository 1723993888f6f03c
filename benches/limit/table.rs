//! Owns the speed table: what a row says, how it is printed, and the medians behind it.

use std::io::Write;

use serde::Serialize;

use crate::Outcome;
use leasehold_cli::bench::report::{Line, rounded};

/// Which way a figure is good, and how far it has to go.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// For orientation.
    None,
}

/// One ratio.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) engine: &'static str,
    pub(crate) workload: String,
    pub(crate) figure: &'static str,
    pub(crate) n: usize,
    pub(crate) rounds: usize,
    /// What it is held against.
    pub(crate) against: String,
    pub(crate) base: f64,
    pub(crate) leasehold: f64,
    pub(crate) ratio: f64,
    /// The ratio of the best rounds: what the noise of a busy machine touches least.
    pub(crate) best: f64,
    /// The least and the largest ratio of one round.
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) target: Target,
    pub(crate) met: Option<bool>,
    /// The machine's load in the quietest and the busiest round, where the system tells.
    pub(crate) load: Option<(f64, f64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    lines: Vec<Line>,
}

/// The figures of the rounds, by round, and how loaded the machine was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) base: Vec<f64>,
    pub(crate) leasehold: Vec<f64>,
    pub(crate) loads: Vec<f64>,
}

impl Rounds {
    /// Makes a row; `row` has the rest of its fields.
    pub(crate) fn row(&self, head: &Head<'_>) -> Row {
        let (base, leasehold) = (median(&self.base), median(&self.leasehold));
        let each = || self.leasehold.iter().zip(&self.base).map(|(ours, base)| ours / base);
        let ratio = leasehold / base;
        let met = match head.target {
            Target::AtLeast(least) => Some(ratio >= least),
            Target::AtMost(most) => Some(ratio <= most),
            Target::None => None,
        };
        let load = (!self.loads.is_empty()).then(|| {
            let least = self.loads.iter().copied().fold(f64::INFINITY, f64::min);
            (least, self.loads.iter().copied().fold(0.0, f64::max))
        });
        Row {
            engine: head.engine,
            workload: head.workload.to_owned(),
            figure: head.figure,
            n: head.jobs,
            rounds: self.leasehold.len(),
            against: head.against.to_owned(),
            base: rounded(base),
            leasehold: rounded(leasehold),
            ratio: rounded(ratio),
            best: rounded(head.best(&self.leasehold) / head.best(&self.base)),
            low: rounded(each().fold(f64::INFINITY, f64::min)),
            high: rounded(each().fold(0.0, f64::max)),
            target: head.target,
            met,
            load,
        }
    }
}

/// What a row is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) engine: &'static str,
    pub(crate) workload: &'a str,
    pub(crate) figure: &'static str,
    pub(crate) against: &'a str,
    pub(crate) jobs: usize,
    pub(crate) target: Target,
}

impl Head<'_> {
    /// The best of some rounds: the highest rate, or the shortest time.
    fn best(&self, values: &[f64]) -> f64 {
        let values = values.iter().copied();
        if self.figure == "jobs/s" {
            values.fold(0.0, f64::max)
        } else {
            values.fold(f64::INFINITY, f64::min)
        }
    }
}

impl Table {
    /// Prints a row and keeps it.
    pub(crate) fn add(&mut self, row: Row) -> Outcome<()> {
        print(&serde_json::to_string(&row)?)?;
        self.rows.push(row);
        Ok(())
    }

    /// Keeps the line whose figure is the median of several, which all are of one workload.
    pub(crate) fn keep(&mut self, mut lines: Vec<Line>) {
        let by = |line: &Line| {
            leasehold_cli::bench::compare::figure(line).map_or(0.0, |(_, value)| value)
        };
        lines.sort_by(|a, b| by(a).total_cmp(&by(b)));
        let middle = lines.len() / 2;
        self.lines.extend(lines.into_iter().nth(middle));
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.clone()
    }
}

impl Row {
    /// A line of a Markdown table.
    pub(crate) fn to_markdown(&self) -> String {
        let target = match self.target {
            Target::AtLeast(least) => format!("≥ {least}"),
            Target::AtMost(most) => format!("≤ {most}"),
            Target::None => "-".to_owned(),
        };
        let met = self.met.map_or("", |met| if met { "met" } else { "missed" });
        let load = self.load.map_or("-".to_owned(), |(low, high)| format!("{low:.1} to {high:.1}"));
        format!(
            "| {} | `{}` {} | {} {} | {} | **{:.2}** | {:.2} | {:.2} to {:.2} | {target} {met} | {load} |\n",
            self.engine,
            self.workload,
            self.figure,
            self.against,
            short(self.base),
            short(self.leasehold),
            self.ratio,
            self.best,
            self.low,
            self.high
        )
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn print(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
