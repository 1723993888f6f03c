//! Owns the figures of a store, counted from its indexes, and what an operator should know of the
//! library and the clock. Writes nothing.

use std::collections::BTreeMap;

use leasehold_core::{OutboxStats, QueueName, QueueStats, Result, State, Stats, StatsScope};
use rusqlite::{Connection, params};

use crate::files::Files;
use crate::find;
use crate::load::{Facts, Shared};
use crate::row::Columns;
use crate::statement::{row, rows, sql};

type Queues = BTreeMap<QueueName, QueueStats>;

/// Counts what the scope asks for; the connection is inside a transaction.
pub(crate) fn stats(conn: &Connection, shared: &Shared, scope: StatsScope) -> Result<Stats> {
    let facts = Facts::load(conn, shared)?;
    let engine = format!("SQLite {}", rusqlite::version());
    let mut stats = Stats::new(facts.now, facts.epoch, engine);
    stats.limit = facts.limit;
    let mut queues: Queues = find::queues(conn)?
        .into_iter()
        .map(|row| (row.name.clone(), QueueStats::new(row.name, row.paused, row.limit)))
        .collect();
    if scope >= StatsScope::Live {
        waiting(conn, &facts, &mut queues)?;
        blocked(conn, &mut queues)?;
        leased(conn, &facts, &mut queues)?;
        stats.outbox = outbox(conn)?;
    }
    if scope == StatsScope::All {
        ended(conn, &mut queues)?;
        stats.outbox.delivered = delivered(conn)?;
    }
    stats.queues = queues.into_values().collect();
    stats.warnings.extend(shared.clock.warning(facts.now));
    stats.warnings.extend(shared.files.as_ref().and_then(Files::warning));
    stats.log_bytes = shared.files.as_ref().map(Files::log_bytes);
    stats.warnings.extend(library_warning(rusqlite::version_number()));
    Ok(stats)
}

fn of<'q>(queues: &'q mut Queues, name: &QueueName) -> &'q mut QueueStats {
    queues.entry(name.clone()).or_insert_with(|| QueueStats::new(name.clone(), false, None))
}

fn waiting(conn: &Connection, facts: &Facts, queues: &mut Queues) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text))?;
        Ok((name, columns.raw::<i64>()?, columns.raw::<i64>()?, columns.time()?))
    };
    for (name, ready, later, first) in
        rows(conn, sql!("stats_waiting"), params![facts.now.as_micros()], read)?
    {
        let queue = of(queues, &name);
        (queue.ready, queue.later) = (count(ready), count(later));
        queue.oldest_ready = (ready > 0).then_some(first);
        queue.first_due = Some(first);
    }
    Ok(())
}

fn blocked(conn: &Connection, queues: &mut Queues) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.text(|text| QueueName::new(text))?, columns.raw::<i64>()?))
    };
    for (name, blocked) in rows(conn, sql!("stats_blocked"), [], read)? {
        of(queues, &name).blocked = count(blocked);
    }
    Ok(())
}

fn leased(conn: &Connection, facts: &Facts, queues: &mut Queues) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text))?;
        Ok((name, columns.raw::<i64>()?, columns.raw::<i64>()?))
    };
    let now = params![facts.now.as_micros()];
    for (name, leased, expired) in rows(conn, sql!("stats_leased"), now, read)? {
        let queue = of(queues, &name);
        (queue.leased, queue.expired) = (count(leased), count(expired));
    }
    Ok(())
}

fn ended(conn: &Connection, queues: &mut Queues) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text))?;
        Ok((name, columns.text(State::parse)?, columns.raw::<i64>()?))
    };
    for (name, state, rows) in rows(conn, sql!("stats_ended"), [], read)? {
        let queue = of(queues, &name);
        match state {
            State::Succeeded => queue.succeeded = count(rows),
            State::Failed => queue.failed = count(rows),
            State::DeadLetter => queue.dead_letter = count(rows),
            State::Cancelled => queue.cancelled = count(rows),
            State::Waiting | State::Leased => {}
        }
    }
    Ok(())
}

fn outbox(conn: &Connection) -> Result<OutboxStats> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let mut outbox = OutboxStats::default();
        outbox.waiting = count(columns.raw()?);
        outbox.leased = count(columns.raw()?);
        outbox.dead_letter = count(columns.raw()?);
        outbox.oldest_waiting = columns.maybe_time()?;
        Ok(outbox)
    };
    Ok(row(conn, sql!("stats_outbox"), [], read)?.unwrap_or_default())
}

fn delivered(conn: &Connection) -> Result<u64> {
    let read = |row: &rusqlite::Row<'_>| Ok(count(Columns::of(row).raw()?));
    Ok(row(conn, sql!("stats_delivered"), [], read)?.unwrap_or_default())
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}

/// A library that can lose a WAL's content when processes reset it at the wrong moment.
pub(crate) fn library_warning(version: i32) -> Option<String> {
    let repaired = version >= 3_051_003 || version == 3_050_007 || version == 3_044_006;
    (!repaired).then(|| {
        "this SQLite has the WAL-reset bug; use 3.51.3 or later where several processes share a file"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-4
    #[test]
    fn a_library_with_the_known_bug_is_named() {
        for version in [3_040_001, 3_046_000, 3_050_006, 3_051_002] {
            assert!(library_warning(version).is_some(), "{version}");
        }
        for version in [3_044_006, 3_050_007, 3_051_003, 3_054_001] {
            assert!(library_warning(version).is_none(), "{version}");
        }
    }
}
