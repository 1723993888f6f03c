//! Owns the figures of a store, counted from its indexes, and what an operator should know of the
//! library and the clock. Writes nothing.

use leasehold_core::figures::Figures;
use leasehold_core::{OutboxStats, QueueName, Result, State, Stats, StatsScope};
use rusqlite::{Connection, params};

use crate::files::Files;
use crate::find;
use crate::load::{Facts, Shared};
use crate::row::Columns;
use crate::statement::{row, rows, sql};

/// Counts what the scope asks for; the connection is inside a transaction.
pub(crate) fn stats(conn: &Connection, shared: &Shared, scope: StatsScope) -> Result<Stats> {
    let facts = Facts::load(conn, shared)?;
    let engine = format!("SQLite {}", rusqlite::version());
    let mut stats = Stats::new(facts.now, facts.epoch, engine);
    stats.limit = facts.limit;
    let mut figures = Figures::past(find::queues_past(conn)?);
    if scope >= StatsScope::Live {
        waiting(conn, &facts, &mut figures)?;
        blocked(conn, &mut figures)?;
        leased(conn, &facts, &mut figures)?;
        stats.outbox = outbox(conn, &mut figures)?;
    }
    if scope == StatsScope::All {
        ended(conn, &mut figures)?;
        stats.outbox.delivered = delivered(conn)?;
    }
    figures.enter(&mut stats);
    stats.warnings.extend(shared.clock.warning(facts.now));
    stats.warnings.extend(shared.files.as_ref().and_then(Files::warning));
    stats.log_bytes = shared.files.as_ref().map(Files::log_bytes);
    stats.warnings.extend(library_warning(rusqlite::version_number()));
    Ok(stats)
}

fn waiting(conn: &Connection, facts: &Facts, figures: &mut Figures) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.raw::<i64>()?, columns.raw::<i64>()?, columns.time()))
    };
    for (name, ready, later, first) in
        rows(conn, sql!("stats_waiting"), params![facts.now.as_micros()], read)?
    {
        let first = figures.time(first)?;
        let Some(queue) = figures.queue(name)? else { continue };
        (queue.ready, queue.later) = (count(ready), count(later));
        queue.oldest_ready = first.filter(|_| ready > 0);
        queue.first_due = first;
    }
    Ok(())
}

fn blocked(conn: &Connection, figures: &mut Figures) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.text(|text| QueueName::new(text)), columns.raw::<i64>()?))
    };
    for (name, blocked) in rows(conn, sql!("stats_blocked"), [], read)? {
        let Some(queue) = figures.queue(name)? else { continue };
        queue.blocked = count(blocked);
    }
    Ok(())
}

fn leased(conn: &Connection, facts: &Facts, figures: &mut Figures) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.raw::<i64>()?, columns.raw::<i64>()?))
    };
    let now = params![facts.now.as_micros()];
    for (name, leased, expired) in rows(conn, sql!("stats_leased"), now, read)? {
        let Some(queue) = figures.queue(name)? else { continue };
        (queue.leased, queue.expired) = (count(leased), count(expired));
    }
    Ok(())
}

fn ended(conn: &Connection, figures: &mut Figures) -> Result<()> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.text(State::parse)?, columns.raw::<i64>()?))
    };
    for (name, state, rows) in rows(conn, sql!("stats_ended"), [], read)? {
        let Some(queue) = figures.queue(name)? else { continue };
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

fn outbox(conn: &Connection, figures: &mut Figures) -> Result<OutboxStats> {
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let mut outbox = OutboxStats::default();
        outbox.waiting = count(columns.raw()?);
        outbox.leased = count(columns.raw()?);
        outbox.dead_letter = count(columns.raw()?);
        Ok((outbox, columns.maybe_time()))
    };
    let Some((mut outbox, oldest)) = row(conn, sql!("stats_outbox"), [], read)? else {
        return Ok(OutboxStats::default());
    };
    outbox.oldest_waiting = figures.time(oldest)?.flatten();
    Ok(outbox)
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
