//! Owns the figures of a store, counted from its indexes, and what an operator should know of the
//! server. Writes nothing.

use leasehold_core::figures::Figures;
use leasehold_core::{OutboxStats, QueueName, Result, State, Stats, StatsScope};
use tokio_postgres::Row;

use crate::bind::Params;
use crate::find;
use crate::load::{Facts, Shared};
use crate::row::Columns;
use crate::statement::{Db, sql};

/// From this age on, in seconds, an open transaction is worth a warning.
const SNAPSHOT_OLD: u64 = 300;
/// From this many on, dead rows of the hot tables are worth a warning.
const DEAD_ROWS_MANY: u64 = 200_000;

/// Counts what the scope asks for; the connection is inside a transaction.
pub(crate) async fn stats(db: &Db<'_>, shared: &Shared, scope: StatsScope) -> Result<Stats> {
    let facts = Facts::load(db, shared).await?;
    let (engine, warnings) = health(db).await?;
    let mut stats = Stats::new(facts.now, facts.epoch, engine);
    stats.warnings = warnings;
    stats.limit = facts.limit;
    let mut figures = Figures::past(find::queues_past(db).await?);
    if scope >= StatsScope::Live {
        waiting(db, &facts, &mut figures).await?;
        blocked(db, &mut figures).await?;
        leased(db, &facts, &mut figures).await?;
        stats.outbox = outbox(db, &mut figures).await?;
    }
    if scope == StatsScope::All {
        ended(db, &mut figures).await?;
        stats.outbox.delivered = delivered(db).await?;
    }
    figures.enter(&mut stats);
    Ok(stats)
}

async fn waiting(db: &Db<'_>, facts: &Facts, figures: &mut Figures) -> Result<()> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.number::<u64>()?, columns.number::<u64>()?, columns.time()))
    };
    let now = Params::new().one(facts.now);
    for (name, ready, later, first) in db.rows(sql!("stats_waiting"), now, read).await? {
        let first = figures.time(first)?;
        let Some(queue) = figures.queue(name)? else { continue };
        (queue.ready, queue.later) = (ready, later);
        queue.oldest_ready = first.filter(|_| ready > 0);
        queue.first_due = first;
    }
    Ok(())
}

async fn blocked(db: &Db<'_>, figures: &mut Figures) -> Result<()> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok((columns.text(|text| QueueName::new(text)), columns.number()?))
    };
    for (name, blocked) in db.rows(sql!("stats_blocked"), Params::new(), read).await? {
        let Some(queue) = figures.queue(name)? else { continue };
        queue.blocked = blocked;
    }
    Ok(())
}

async fn leased(db: &Db<'_>, facts: &Facts, figures: &mut Figures) -> Result<()> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.number()?, columns.number()?))
    };
    let now = Params::new().one(facts.now);
    for (name, leased, expired) in db.rows(sql!("stats_leased"), now, read).await? {
        let Some(queue) = figures.queue(name)? else { continue };
        (queue.leased, queue.expired) = (leased, expired);
    }
    Ok(())
}

async fn ended(db: &Db<'_>, figures: &mut Figures) -> Result<()> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let name = columns.text(|text| QueueName::new(text));
        Ok((name, columns.text(State::parse)?, columns.number()?))
    };
    for (name, state, rows) in db.rows(sql!("stats_ended"), Params::new(), read).await? {
        let Some(queue) = figures.queue(name)? else { continue };
        match state {
            State::Succeeded => queue.succeeded = rows,
            State::Failed => queue.failed = rows,
            State::DeadLetter => queue.dead_letter = rows,
            State::Cancelled => queue.cancelled = rows,
            State::Waiting | State::Leased => {}
        }
    }
    Ok(())
}

async fn outbox(db: &Db<'_>, figures: &mut Figures) -> Result<OutboxStats> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let mut outbox = OutboxStats::default();
        outbox.waiting = columns.number()?;
        outbox.leased = columns.number()?;
        outbox.dead_letter = columns.number()?;
        Ok((outbox, columns.maybe_time()))
    };
    let Some((mut outbox, oldest)) = db.row(sql!("stats_outbox"), Params::new(), read).await?
    else {
        return Ok(OutboxStats::default());
    };
    outbox.oldest_waiting = figures.time(oldest)?.flatten();
    Ok(outbox)
}

async fn delivered(db: &Db<'_>) -> Result<u64> {
    let read = |row: &Row| Columns::of(row).number();
    Ok(db.row(sql!("stats_delivered"), Params::new(), read).await?.unwrap_or_default())
}

/// The engine's name, and what is wrong with the server.
async fn health(db: &Db<'_>) -> Result<(String, Vec<String>)> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok((columns.raw::<String>()?, columns.number::<u64>()?, columns.number::<u64>()?))
    };
    let name = Params::new().one(db.schema.name());
    let found = db.row(sql!("stats_health"), name, read).await?;
    let (version, age, dead) = found.unwrap_or_default();
    Ok((format!("PostgreSQL {version}"), warnings(age, dead)))
}

fn warnings(age: u64, dead: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if age >= SNAPSHOT_OLD {
        warnings.push(format!(
            "a transaction has been open for {age} s; claims grow slower until it ends"
        ));
    }
    if dead >= DEAD_ROWS_MANY {
        warnings.push(format!("jobs and events hold {dead} dead rows; autovacuum falls behind"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-4
    #[test]
    fn an_old_transaction_and_dead_rows_are_named() {
        assert!(warnings(299, 199_999).is_empty());
        assert!(warnings(300, 0).iter().any(|it| it.contains("300 s")));
        assert!(warnings(0, 200_000).iter().any(|it| it.contains("200000 dead rows")));
    }
}
