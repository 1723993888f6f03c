//! Owns `docs/mutants.md`: every alteration, the test that notices it, and why nothing notices the others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use libtest_mimic::Failed;

use crate::Ends;
use crate::list::Mutant;

const HEAD: &str = "# Mutants of the statements\n\n\
    <!-- Written by `scripts/nightly mutants`, never by hand. -->\n\n\
    What the suites are worth: each row alters one statement of one engine, and the last column names the program and\n\
    the test that failed first, and that passes on the true statement, or says why none can. The lists are\n\
    `backends/*/tests/mutants.txt`, which each run of the tests holds to the statements as they are;\n\
    `LEASEHOLD_MUTANTS=claim scripts/nightly mutants` tries those again whose names hold a word. *scenarios* are those\n\
    of the conformance suite, on PostgreSQL as behind a pooler too.\n";
const NOT_TRIED: &str = "not tried yet";
const NOBODY: &str = "NOBODY";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/mutants.md")
}

/// The cells of each row: the name of the alteration, what is altered, and what came of it.
fn rows() -> BTreeMap<String, (String, String)> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let (name, edit, end) = (cells.next()?, cells.next()?, cells.next()?);
        Some((name.trim_end_matches('`').to_owned(), (edit.to_owned(), end.to_owned())))
    });
    rows.collect()
}

/// The program and the test that noticed each when the page was written.
pub(crate) fn known() -> BTreeMap<String, String> {
    let test = |(name, (_, end)): (String, (String, String))| {
        let test = end.strip_prefix('`')?.strip_suffix('`')?;
        Some((name, test.to_owned()))
    };
    rows().into_iter().filter_map(test).collect()
}

/// Whether a row says what came of an alteration as it is listed now.
fn tells(row: Option<&(String, String)>, it: &Mutant) -> bool {
    row.is_some_and(|(edit, end)| *edit == it.shown() && ![NOT_TRIED, NOBODY].contains(&&**end))
}

/// Those of which the page does not say what came of them.
pub(crate) fn untold(all: &[Mutant]) -> Vec<Mutant> {
    let rows = rows();
    all.iter().filter(|it| !tells(rows.get(&it.full_name()), it)).cloned().collect()
}

/// A page that tells of other alterations than are listed would tell of nothing.
///
/// # Errors
/// Which rows are not as the lists have them.
pub(crate) fn is_of(all: &[Mutant]) -> Result<(), Failed> {
    let mut rows = rows();
    let mut wrong = Vec::new();
    for it in all {
        let name = it.full_name();
        if !tells(rows.remove(&name).as_ref(), it) {
            wrong.push(name);
        }
    }
    wrong.extend(rows.into_keys());
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("try these, with LEASEHOLD_UPDATE_MUTANTS=1: {wrong:?}").into()),
    }
}

/// Writes the page; what was not tried this time, and is the same as then, keeps its end.
pub(crate) fn write(all: &[Mutant], ends: &Ends) {
    let before = rows();
    let end = |it: &Mutant| match (ends.get(&it.full_name()), &it.reason) {
        (Some(Some(test)), _) => format!("`{test}`"),
        (Some(None), Some(reason)) => reason.clone(),
        (Some(None), None) => NOBODY.to_owned(),
        (None, _) => match before.get(&it.full_name()) {
            Some((edit, end)) if *edit == it.shown() => end.clone(),
            _ => NOT_TRIED.to_owned(),
        },
    };
    let mut page = HEAD.to_owned();
    for (engine, title) in [("sqlite", "SQLite"), ("postgres", "PostgreSQL")] {
        let of: Vec<&Mutant> = all.iter().filter(|it| it.engine == engine).collect();
        let noticed = of.iter().filter(|it| end(it).starts_with('`')).count();
        let _fits =
            writeln!(page, "\n## {title}\n\n{} alterations, {noticed} noticed.\n", of.len());
        page.push_str("| Alteration | What | Noticed by |\n|---|---|---|\n");
        for it in of {
            let _fits = writeln!(page, "| `{}` | {} | {} |", it.full_name(), it.shown(), end(it));
        }
    }
    fs::write(path(), page).expect("written");
}
