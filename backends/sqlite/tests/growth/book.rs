//! Owns the book of plans: how SQLite runs each statement, and what that cost on a small and on a large
//! database, written as Markdown into the file that `LEASEHOLD_PLAN_FILE` names.

use std::fmt::Write as _;

use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::{Transaction, version};

use crate::{Costs, ROWS_SMALL, on_writer, statements};

/// Writes one entry for each statement, where a book is asked for.
pub(crate) async fn write_if_wanted(
    store: &SqliteStore,
    rows: usize,
    small: &Costs,
    large: &Costs,
) {
    let Ok(path) = std::env::var("LEASEHOLD_PLAN_FILE") else { return };
    let plans = on_writer(store, |tx| {
        let plan = |(name, text): (String, String)| (name, plan(tx, &text));
        statements().into_iter().map(plan).collect::<Vec<_>>()
    });
    let mut plans = plans.await;
    plans.sort();
    let mut text = format!(
        "# Plans on SQLite\n\n\
         Written by `scripts/plans`, never by hand. SQLite {}; {} jobs and as many rows in proportion in the \
         other tables, after `analyze`. *Steps* are those of SQLite's virtual machine for one run, on average \
         over every verb and filter of the check: first with {} jobs, then with all; a statement that no verb \
         of the check ran has none.\n",
        version(),
        rows * 5,
        ROWS_SMALL * 5,
    );
    for (name, plan) in plans {
        let steps =
            |costs: &Costs| costs.get(&name).filter(|cost| cost.runs > 0).map(|cost| cost.each());
        let steps = match (steps(small), steps(large)) {
            (Some(small), Some(large)) => format!("{small} steps, then {large}\n\n"),
            _ => String::new(),
        };
        write!(text, "\n## {name}\n\n{steps}```text\n{plan}```\n").expect("a string takes all");
    }
    std::fs::write(path, text).expect("the book of plans");
}

/// The plan's lines; parameters stay unbound, so no plan rests on their values.
fn plan(tx: &Transaction<'_>, statement: &str) -> String {
    let mut explained =
        tx.prepare(&format!("explain query plan {statement}")).expect("a statement");
    let mut rows = explained.raw_query();
    let mut lines = String::new();
    let mut depths = std::collections::BTreeMap::from([(0, 0)]);
    while let Some(row) = rows.next().expect("a plan") {
        let number = |at| row.get::<_, i64>(at).expect("a number");
        let depth = depths.get(&number(1)).map_or(0, |depth| depth + 1);
        depths.insert(number(0), depth);
        let line = row.get::<_, String>(3).expect("a line");
        writeln!(lines, "{:width$}{line}", "", width = 2 * (depth - 1))
            .expect("a string takes all");
    }
    if lines.is_empty() { "(no table is searched)\n".to_owned() } else { lines }
}
