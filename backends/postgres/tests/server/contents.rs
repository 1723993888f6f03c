//! Owns what a statement gives, so that it can be compared under one plan and another: its rows in the order
//! that it promises, or else sorted; ids and times that it is given are the same each time.

use leasehold_postgres::tokio_postgres::{Client, SimpleQueryMessage};

use crate::statements::Said;

/// Columns that a statement takes from the server's clock, or works out from it.
const FRESH: [(&str, &[&str]); 5] = [
    ("claim_alone", &["now", "lease_expires_at"]),
    ("lock_events", &["coalesce"]),
    ("lock_events_free", &["coalesce"]),
    ("lock_jobs", &["coalesce"]),
    ("lock_jobs_free", &["coalesce"]),
];

const ID: &str = "'11111111-1111-7111-8111-111111111111'::uuid";

/// The rows of a statement: each a line of its columns.
pub(crate) type Contents = Vec<String>;

/// What the time is in the statements' values.
pub(crate) async fn now(session: &Client) -> String {
    let row = session.query_one("select now()::text", &[]).await.expect("a time");
    format!("'{}'::timestamptz", row.get::<_, String>(0))
}

/// A statement whose values are the same each time.
pub(crate) fn pinned(said: Said, now: &str) -> Said {
    let values = said.values.replace("gen_random_uuid()", ID).replace("now()", now);
    Said { values, ..said }
}

/// Runs a statement that is prepared, and takes back what it did.
pub(crate) async fn contents(session: &Client, said: &Said) -> Contents {
    let values = if said.values.is_empty() { String::new() } else { format!("({})", said.values) };
    let text = format!("begin; execute \"{}\" {values}", said.name);
    let answers = session.simple_query(&text).await;
    let answers = answers.unwrap_or_else(|error| panic!("{}: {error:?}", said.name));
    session.batch_execute("rollback").await.expect("rolled back");
    let fresh = FRESH.iter().find(|(name, _)| *name == said.name).map_or(&[][..], |(_, it)| it);
    let mut rows: Contents = Vec::new();
    for answer in &answers {
        let SimpleQueryMessage::Row(row) = answer else { continue };
        let columns = row.columns().iter().enumerate();
        let kept = columns.filter(|(_, column)| !fresh.contains(&column.name()));
        let cells = kept.map(|(at, column)| format!("{}={:?}", column.name(), row.get(at)));
        rows.push(cells.collect::<Vec<_>>().join(" "));
    }
    if !is_ordered(&said.text) {
        rows.sort_unstable();
    }
    rows
}

/// Whether a statement promises an order: one that is in no parentheses.
fn is_ordered(text: &str) -> bool {
    let code = text.lines().map(|line| line.split("--").next().unwrap_or(line));
    let mut depth = 0;
    let outside: String = code
        .flat_map(str::chars)
        .filter(|letter| {
            depth += i32::from(*letter == '(') - i32::from(*letter == ')');
            depth == 0
        })
        .collect();
    outside.contains("order by")
}

/// Where a statement's rows part from those that it gave first.
pub(crate) fn difference(first: Option<&Contents>, found: &Contents) -> Option<String> {
    let first = first?;
    let at = (0..first.len().max(found.len())).find(|at| first.get(*at) != found.get(*at))?;
    Some(format!("row {at} is\n{:?}, and under another plan\n{:?}", found.get(at), first.get(at)))
}
