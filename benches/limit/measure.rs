//! Owns how a line is measured: both sides take turns in every round, each on a queue of its own.

use std::time::Instant;

use crate::course::Sizes;
use crate::engine::{Engine, Place};
use crate::table::{Head, Rounds, Table, Target, median};
use crate::{Extra, Limit, Outcome};
use leasehold_cli::bench::report::Line;
use leasehold_cli::bench::workload::{Load, Sample, Workload, claims, fresh_queue};
use leasehold_cli::connect::Opened;

/// One or more lines of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) workload: Workload,
    pub(crate) kind: Kind,
    pub(crate) target: Target,
}

/// What a workload is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The raw loop, with so many jobs a transaction.
    Raw { batch: usize, log: bool },
    /// The raw loop with a fence, held against itself without.
    Fence { batch: usize },
    /// Our own single client.
    GroupCommit,
    /// Our own drain of jobs that are of no partition.
    Partitions,
    /// The raw loop's time to the start of the work.
    Pickup,
    /// Our own drain without the reapers.
    Reapers,
    /// Our own drain without the crowd.
    Crowd,
    /// Our own fewer processes.
    Processes,
    /// Our own claims without an open transaction.
    Held,
    /// A number of MiB.
    Memory,
}

/// What the measurements of one course share.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) place: &'a Place,
    pub(crate) engine: Engine,
    pub(crate) sizes: Sizes,
    pub(crate) rounds: usize,
}

impl Run<'_> {
    pub(crate) fn load(&self, opened: &Opened, workload: Workload) -> Outcome<Load> {
        Ok(Load {
            opened: opened.clone(),
            queue: fresh_queue()?,
            jobs: self.sizes.jobs_of(workload),
            slots: 100,
            rows: self.sizes.rows_of(workload),
            processes: vec![1, 2, 4, 8],
            log: false,
            partitions: 0,
        })
    }

    pub(crate) fn head<'a>(
        &self,
        course: &Course,
        workload: &'a str,
        against: &'a str,
    ) -> Head<'a> {
        let (engine, jobs) = (self.engine.name(), self.sizes.jobs_of(course.workload));
        Head { engine, workload, figure: "jobs/s", against, jobs, target: course.target }
    }

    fn line(&self, workload: Workload, sample: &Sample) -> Line {
        Line::of(self.engine.name(), workload, sample)
    }

    /// Leasehold against the raw loop.
    pub(crate) async fn raw(
        &self,
        course: &Course,
        batch: usize,
        log: bool,
        table: &mut Table,
    ) -> Outcome<()> {
        let mut limit = self.place.limit(self.engine).await?;
        let pool = (course.workload == Workload::W1C64).then_some(8);
        let opened = self.place.open(self.engine, pool).await?;
        let (mut rounds, mut lines, mut raw) = (Rounds::default(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let load = Load { slots: batch, log, ..self.load(&opened, course.workload)? };
            for side in [round % 2, 1 - round % 2] {
                if side == 0 {
                    let extra = if log { Extra::Log } else { Extra::Nothing };
                    let sample =
                        raw_sample(&mut *limit, course.workload, &load, batch, extra).await?;
                    rounds.base.push(sample.rate());
                    let line = self.line(course.workload, &sample);
                    raw.push(Line { peer: "limit".to_owned(), ..line });
                } else {
                    let sample = only(course.workload.run(&load).await?)?;
                    rounds.leasehold.push(sample.rate());
                    lines.push(self.line(course.workload, &sample));
                }
            }
            rounds.loads.extend(load_average());
        }
        let mut name = course.workload.name().to_owned();
        if course.workload == Workload::W3 {
            name += &format!(" by {batch}{}", if log { ", with log" } else { "" });
        }
        table.add(rounds.row(&self.head(course, &name, "limit")))?;
        if !log && (course.workload != Workload::W3 || batch == 1_000) {
            table.keep(lines);
            table.keep(raw);
        }
        Ok(())
    }

    /// What a fence costs where nothing else is in the way.
    pub(crate) async fn fence(
        &self,
        course: &Course,
        batch: usize,
        table: &mut Table,
    ) -> Outcome<()> {
        let mut limit = self.place.limit(self.engine).await?;
        let opened = self.place.open(self.engine, None).await?;
        let mut rounds = Rounds::default();
        for round in 0..self.rounds {
            for side in [round % 2, 1 - round % 2] {
                let load = self.load(&opened, course.workload)?;
                let (extra, rates) = if side == 0 {
                    (Extra::Nothing, &mut rounds.base)
                } else {
                    (Extra::Fence, &mut rounds.leasehold)
                };
                let sample = raw_sample(&mut *limit, course.workload, &load, batch, extra).await?;
                rates.push(sample.rate());
            }
            rounds.loads.extend(load_average());
        }
        let name = format!("{} by {batch}, limit with fence", course.workload.name());
        table.add(rounds.row(&self.head(course, &name, "limit")))
    }

    /// Many tasks against one client.
    pub(crate) async fn group_commit(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let (mut rounds, mut lines) = (Rounds::default(), Vec::new());
        for _ in 0..self.rounds {
            let one = only(Workload::W1.run(&self.load(&opened, Workload::W1)?).await?)?;
            rounds.base.push(one.rate());
            let many = only(course.workload.run(&self.load(&opened, course.workload)?).await?)?;
            rounds.leasehold.push(many.rate());
            lines.push(self.line(course.workload, &many));
            rounds.loads.extend(load_average());
        }
        table.keep(lines);
        table.add(rounds.row(&self.head(course, course.workload.name(), "own w1")))
    }

    /// A drain of a thousand partitions against one of none.
    pub(crate) async fn partitions(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let (mut rounds, mut lines) = (Rounds::default(), Vec::new());
        for round in 0..self.rounds {
            for side in [round % 2, 1 - round % 2] {
                let workload = if side == 0 { Workload::W3 } else { course.workload };
                let load = Load { slots: 1_000, ..self.load(&opened, workload)? };
                let sample = only(workload.run(&load).await?)?;
                if side == 0 {
                    rounds.base.push(sample.rate());
                } else {
                    rounds.leasehold.push(sample.rate());
                    lines.push(self.line(workload, &sample));
                }
            }
            rounds.loads.extend(load_average());
        }
        table.keep(lines);
        let name = format!("{} by 1000", course.workload.name());
        table.add(rounds.row(&self.head(course, &name, "own w3")))
    }

    pub(crate) async fn pickup(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let mut limit = self.place.limit(self.engine).await?;
        let opened = self.place.open(self.engine, None).await?;
        let from_call = course.workload == Workload::W4FromCall;
        let mut both = [(50, Rounds::default()), (99, Rounds::default())];
        let (mut lines, mut raw) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let load = self.load(&opened, course.workload)?;
            for side in [round % 2, 1 - round % 2] {
                let begun = Instant::now();
                let sample = if side == 0 {
                    let picked = limit.pick_up(load.queue.as_str(), load.jobs).await?;
                    let each = picked.iter().map(|it| if from_call { it.0 } else { it.1 });
                    Sample::new(load.jobs, begun.elapsed(), each.collect())
                } else {
                    only(course.workload.run(&load).await?)?
                };
                for (percent, rounds) in &mut both {
                    let side = if side == 0 { &mut rounds.base } else { &mut rounds.leasehold };
                    side.extend(sample.percentile(*percent));
                }
                let line = self.line(course.workload, &sample);
                if side == 0 {
                    raw.push(Line { peer: "limit".to_owned(), ..line });
                } else {
                    lines.push(line);
                }
            }
            both.iter_mut().for_each(|(_, rounds)| rounds.loads.extend(load_average()));
        }
        table.keep(lines);
        table.keep(raw);
        for (percent, rounds) in &both {
            let mut head = self.head(course, course.workload.name(), "limit");
            head.figure = if *percent == 50 { "p50 ms" } else { "p99 ms" };
            if *percent == 99 {
                head.target = if from_call { Target::AtMost(2.0) } else { Target::None };
            }
            table.add(rounds.row(&head))?;
        }
        Ok(())
    }

    /// A queue with a crowd against one without, in stores of their own.
    pub(crate) async fn crowd(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let alone = self.place.open(self.engine, None).await?;
        let crowded = self.place.open(self.engine, None).await?;
        let mut load = self.load(&crowded, course.workload)?;
        let all_due = course.workload == Workload::W5By1M;
        let due = if all_due { load.rows.max(load.jobs * (self.rounds + 1)) } else { load.rows };
        claims::prepare_crowd(&load, course.workload.crowd(), due).await?;
        let (mut rates, mut tails) = (Rounds::default(), Rounds::default());
        let (mut base, mut lines) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let few = Load { rows: 0, ..self.load(&alone, Workload::W5By10K)? };
            claims::prepare_crowd(&few, Workload::W5By10K.crowd(), 0).await?;
            for side in [round % 2, 1 - round % 2] {
                let from = if side == 0 { &few } else { &load };
                let sample = claims::take_crowd(from).await?;
                let pick = |it: &mut Rounds, value: f64| {
                    if side == 0 { it.base.push(value) } else { it.leasehold.push(value) }
                };
                pick(&mut rates, sample.rate());
                pick(&mut tails, sample.percentile(99).unwrap_or(f64::NAN));
                if side == 0 {
                    base.push(self.line(Workload::W5By10K, &sample));
                } else {
                    lines.push(self.line(course.workload, &sample));
                }
            }
            [&mut rates, &mut tails].iter_mut().for_each(|it| it.loads.extend(load_average()));
            if !all_due && round + 1 < self.rounds {
                load = self.again(&load).await?;
            }
        }
        table.keep(base);
        table.keep(lines);
        table.add(rates.row(&self.head(course, course.workload.name(), "w5_10k")))?;
        let mut head = self.head(course, course.workload.name(), "w5_10k");
        (head.figure, head.target) = ("claim p99 ms", Target::AtMost(1.5));
        table.add(tails.row(&head))?;
        self.place.remove(crowded).await
    }

    /// Puts due jobs into the queue of a crowd once more.
    async fn again(&self, load: &Load) -> Outcome<Load> {
        claims::prepare_crowd(load, Workload::W5By10K.crowd(), 0).await?;
        Ok(load.clone())
    }

    pub(crate) async fn processes(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let counts = self.load(&opened, course.workload)?.processes;
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
        let mut lines: Vec<Vec<Line>> = vec![Vec::new(); counts.len()];
        let mut loads = Vec::new();
        for _ in 0..self.rounds {
            let samples = course.workload.run(&self.load(&opened, course.workload)?).await?;
            for ((sample, rates), lines) in samples.iter().zip(&mut rates).zip(&mut lines) {
                rates.push(sample.rate());
                lines.push(self.line(course.workload, sample));
            }
            loads.extend(load_average());
        }
        // Against one process on SQLite, whose file has one writer; else against the best.
        let lite = self.engine == Engine::Sqlite;
        let best = rates.iter().max_by(|a, b| median(a).total_cmp(&median(b)));
        let base = if lite { rates.first() } else { best }.cloned().unwrap_or_default();
        for (count, leasehold) in counts.iter().zip(&rates).skip(usize::from(lite)) {
            let leasehold = leasehold.clone();
            let rounds = Rounds { base: base.clone(), leasehold, loads: loads.clone() };
            let name = format!("w6_{count}");
            let mut head = self.head(course, &name, if lite { "w6_1" } else { "best w6" });
            if *count != if lite { 4 } else { 8 } {
                head.target = Target::None;
            }
            table.add(rounds.row(&head))?;
        }
        lines.into_iter().for_each(|lines| table.keep(lines));
        Ok(())
    }

    pub(crate) async fn held(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let (mut rounds, mut free, mut held) = (Rounds::default(), Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let samples = course.workload.run(&self.load(&opened, course.workload)?).await?;
            for (sample, at) in samples.iter().zip(0..) {
                let line = self.line(course.workload, sample);
                let (figures, lines) = if at == 0 {
                    (&mut rounds.base, &mut free)
                } else {
                    (&mut rounds.leasehold, &mut held)
                };
                figures.extend(sample.percentile(99));
                lines.push(line);
            }
            rounds.loads.extend(load_average());
        }
        table.keep(free);
        table.keep(held);
        let mut head = self.head(course, "w7_held", "w7_free");
        head.figure = "claim p99 ms";
        table.add(rounds.row(&head))
    }

    pub(crate) async fn memory(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let (mut rounds, mut lines) = (Rounds::default(), Vec::new());
        for _ in 0..self.rounds {
            let load = self.load(&opened, course.workload)?;
            let line = self.line(course.workload, &only(course.workload.run(&load).await?)?);
            rounds.base.push(1.0);
            rounds
                .leasehold
                .extend(leasehold_cli::bench::compare::figure(&line).map(|(_, mib)| mib));
            lines.push(line);
            rounds.loads.extend(load_average());
        }
        table.keep(lines);
        let mut head = self.head(course, "memory", "MiB");
        head.figure = "beyond payloads";
        table.add(rounds.row(&head))
    }
}

pub(crate) fn only(samples: Vec<Sample>) -> Outcome<Sample> {
    samples.into_iter().next().ok_or_else(|| "a workload measured nothing".into())
}

/// What the raw loop does for a workload.
async fn raw_sample(
    limit: &mut dyn Limit,
    workload: Workload,
    load: &Load,
    batch: usize,
    extra: Extra,
) -> Outcome<Sample> {
    let (queue, jobs) = (load.queue.as_str(), load.jobs);
    let mut begun = Instant::now();
    match workload {
        Workload::W1C64 => limit.enqueue_from(queue, jobs, 64).await?,
        Workload::W3 => {
            limit.enqueue(queue, jobs, 1_000).await?;
            begun = Instant::now();
            let drained = limit.drain(queue, batch, extra).await?;
            if drained != jobs {
                return Err(format!("{drained} of {jobs} jobs were drained").into());
            }
        }
        _ => limit.enqueue(queue, jobs, batch).await?,
    }
    Ok(Sample::new(jobs, begun.elapsed(), Vec::new()))
}

/// How many tasks have been runnable in the last minute, where the system tells.
pub(crate) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
