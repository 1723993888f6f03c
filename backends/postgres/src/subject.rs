//! Owns what is stored of subjects that are run again: what is known of one, and its mark.

use std::collections::BTreeMap;

use leasehold_core::row::SubjectRow;
use leasehold_core::rules::{KnownRun, KnownSubject};
use leasehold_core::{JobId, Result, State};

use crate::bind::Params;
use crate::error::came_first;
use crate::row::Columns;
use crate::statement::{Db, sql};

/// What is known of some subjects, each in view of one version or more.
pub(crate) async fn load(
    db: &Db<'_>,
    wanted: &[(String, i64)],
) -> Result<BTreeMap<String, KnownSubject>> {
    let mut subjects: BTreeMap<String, KnownSubject> = BTreeMap::new();
    for (name, version) in wanted {
        let known = subjects.entry(name.clone()).or_default();
        let values = Params::new().one(name.as_str()).one(*version);
        let found = db.rows(sql!("load_subject"), values, |row| {
            let mut columns = Columns::of(row);
            let (version, job) = (columns.raw()?, JobId::from_uuid(columns.id()?));
            let state = columns.maybe(State::parse)?;
            Ok(((version, job), state, columns.maybe_json()?))
        });
        for ((version, job), state, result) in found.await? {
            match state {
                Some(state) => known.add(KnownRun { version, job, state, result }),
                None => known.mark = Some((version, job)), // the only one that has no state
            }
        }
    }
    Ok(subjects)
}

/// Sets the marks of subjects, in an order that all transactions share.
pub(crate) async fn mark(db: &Db<'_>, rows: &[SubjectRow]) -> Result<()> {
    let mut rows: Vec<&SubjectRow> = rows.iter().collect();
    rows.sort_by_key(|row| &row.name);
    for row in rows {
        let values = Params::new()
            .one(row.name.as_str())
            .one(row.version)
            .one(row.job)
            .one(row.before.map(|(version, _)| version))
            .one(row.before.map(|(_, job)| job));
        if db.execute(sql!("mark_subject"), values).await? != 1 {
            return Err(came_first());
        }
    }
    Ok(())
}
