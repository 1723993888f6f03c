//! Owns the command `conformance`: how much of the suite is played on whose database, where the report goes,
//! and what is said at the end. Refuses to know the engine; that is `ground`.

mod ground;
mod storms;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, value_parser};
use leasehold::{CancellationToken, Error, ErrorKind};
use leasehold_conformance::report::{Programme, Report, junit, listen, page};
use serde_json::{Value, json};

use crate::failure::Fatal;
use crate::operate::answer::Answer;
use crate::role::signals;
use ground::Ground;

/// What is played, where, and where the report goes.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "What it makes and removes: on PostgreSQL schemas named leasehold_conformance_…, on \
    SQLite a folder beside the file that the URL names, which itself is neither made nor opened. Tables that \
    are there already are not touched, those of another Leasehold neither. A run that is killed leaves what \
    it had made under those names."
)]
pub struct Arguments {
    /// The database: a path, sqlite:PATH or postgres://…, whose role may create schemas
    #[arg(long, value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    url: String,
    /// The folder for junit.xml and report.html
    #[arg(long, value_name = "DIR")]
    report: PathBuf,
    /// Hurts the store under load too: the wire to PostgreSQL, and answers that are lost on both engines
    #[arg(long)]
    faults: bool,
    /// Random schedules of a few claims, judged by a model
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(0..=1_000_000))]
    schedules: u64,
    /// Races of several workers, whose histories are judged
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(0..=1_000_000))]
    histories: u64,
    /// Random scripts of 50 steps, compared with the store in memory
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u64).range(0..=1_000_000))]
    scripts: u64,
    /// With --faults: unknown outcomes until each load ends
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=1_000_000))]
    unknown: u64,
    /// The first seed of everything that is random
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(0..=1_000_000_000_000))]
    seed: u64,
    /// Only scenarios whose name has this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// For programs: JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// Plays the suite, removes what it made, writes the report and prints what it came to.
///
/// # Errors
/// [`Fatal::Suite`] where a case failed or the run was ended early; the store's where no run could begin.
pub async fn run(arguments: Arguments) -> Result<(), Fatal> {
    let is_new = !arguments.report.exists();
    make_room(&arguments.report)?;
    let done = run_into(&arguments).await;
    if is_new && done.is_err() {
        let _kept_with_a_report = std::fs::remove_dir(&arguments.report);
    }
    done
}

async fn run_into(arguments: &Arguments) -> Result<(), Fatal> {
    let shutdown = CancellationToken::new();
    signals::listen(&shutdown)?;
    let ground = Arc::new(Ground::at(&arguments.url)?);
    crate::failure::tell(format!("makes, and removes at the end: {}", ground.makes()));
    let played = play(&ground, arguments, &shutdown).await;
    let removed = ground.remove().await;
    let mut report = played?;
    report.notes.push(match &removed {
        Ok(()) => format!("Made and removed: {}.", ground.makes()),
        Err(why) => format!("Made, and not all of it removed: {}. {why}", ground.makes()),
    });
    if shutdown.is_cancelled() {
        return Err(Fatal::Suite("the run was ended early; there is no report".into()));
    }
    if report.cases.is_empty() {
        let why = arguments.only.as_deref().unwrap_or_default();
        return Err(Fatal::Suite(format!(
            "nothing was played: no scenario has {why:?} in its name"
        )));
    }
    write(&arguments.report, &report)?;
    answer(&report).print(arguments.json)?;
    removed?;
    match report.failures().count() {
        0 => Ok(()),
        failed => Err(Fatal::Suite(format!(
            "{failed} of {} cases failed; see {}",
            report.cases.len(),
            arguments.report.join("report.html").display()
        ))),
    }
}

async fn play(
    ground: &Arc<Ground>,
    arguments: &Arguments,
    shutdown: &CancellationToken,
) -> Result<Report, Fatal> {
    let mut report = Report::new(ground.engine(), &ground.version().await?);
    let (ground, arguments, shutdown) = (Arc::clone(ground), arguments.clone(), shutdown.clone());
    let playing = tokio::task::spawn_blocking(move || {
        let programme = Programme {
            schedules: arguments.schedules,
            histories: arguments.histories,
            scripts: arguments.scripts,
            seed: arguments.seed,
            only: arguments.only,
        };
        listen();
        let went =
            report.play(&ground.harness(), &leasehold_conformance::memory(), &programme, |case| {
                if let Some(why) = &case.failure {
                    eprintln!(
                        "FAILED {}: {}: {}",
                        case.group,
                        case.name,
                        why.lines().next().unwrap_or("")
                    );
                }
                !shutdown.is_cancelled()
            });
        if arguments.faults && went {
            storms::play(&mut report, &ground, arguments.seed, arguments.unknown);
        }
        drop(std::panic::take_hook());
        report
    });
    playing.await.map_err(|error| Fatal::Suite(format!("the run ended: {error}")))
}

/// Finds out whether a report can be written before anything is played.
fn make_room(folder: &std::path::Path) -> Result<(), Error> {
    let failed = |error| unwritten(folder, &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let probe = folder.join(format!(".leasehold-{}", std::process::id()));
    std::fs::write(&probe, "").and_then(|()| std::fs::remove_file(&probe)).map_err(failed)
}

fn unwritten(folder: &std::path::Path, error: &std::io::Error) -> Error {
    let why = format!("{}: {error}", folder.display());
    Error::new(ErrorKind::Unavailable, "write the report", why)
}

fn write(folder: &std::path::Path, report: &Report) -> Result<(), Fatal> {
    let failed = |error| unwritten(folder, &error);
    std::fs::write(folder.join("junit.xml"), junit::text(report)).map_err(failed)?;
    std::fs::write(folder.join("report.html"), page::text(report)).map_err(failed)?;
    Ok(())
}

const GROUPS: &[&str] = &[
    "group",
    "cases",
    "failed",
    "seconds",
    "succeeded",
    "fenced",
    "refused",
    "unknown",
    "unreached",
];

fn answer(report: &Report) -> Answer {
    let facts = Answer::facts([
        ("engine", json!(report.engine)),
        ("version", json!(report.version)),
        ("cases", json!(report.cases.len())),
        ("failed", json!(report.failures().count())),
        ("seconds", json!(report.seconds)),
        ("notes", json!(report.notes)),
    ]);
    let rows = report.groups().into_iter().map(|group| {
        let named = group.shares.named().map(|(_, number)| json!(number));
        let row = [
            json!(group.name),
            json!(group.played),
            json!(group.failed),
            json!(tenths(group.seconds)),
        ];
        row.into_iter().chain(named).collect()
    });
    let failures = report.failures().map(|case| {
        let why = case.failure.as_deref().unwrap_or_default();
        vec![json!(case.group), json!(case.name), json!(why)]
    });
    let mut parts = vec![
        ("run", facts),
        ("groups", Answer::Rows { columns: GROUPS, rows: rows.collect(), next: None }),
        (
            "failures",
            Answer::Rows {
                columns: &["group", "name", "why"],
                rows: failures.collect(),
                next: None,
            },
        ),
    ];
    parts.extend((!report.hurts.is_empty()).then(|| ("faults", faults(report))));
    Answer::Parts(parts)
}

fn faults(report: &Report) -> Answer {
    let row = |name: &str, what: &str, number: u64| -> Vec<Value> {
        vec![json!(name), json!(what), json!(number)]
    };
    let rows = report.hurts.iter().flat_map(|hurt| {
        let struck = hurt.faults.iter().map(|(what, number)| (*what, *number));
        let all = struck.chain(hurt.figures.iter().copied());
        all.map(move |(what, number)| row(&hurt.name, what, number))
    });
    Answer::Rows { columns: &["hurt", "what", "number"], rows: rows.collect(), next: None }
}

/// A tenth of a second is enough for a person.
fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
