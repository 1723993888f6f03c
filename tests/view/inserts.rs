//! Owns the inserts that programs of other languages send in each form their engine has, and what has to
//! come of each. `VIEW` stands for the view.

#[path = "inserts/postgres.rs"]
mod postgres;
#[path = "inserts/sqlite.rs"]
mod sqlite;

use crate::place::Engine;

/// What has to come of an insert.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// No error, and so many jobs.
    Jobs(usize),
    /// The same, and the program shows this.
    Shows(usize, &'static str),
    /// An error that says this, and nothing is left.
    Refused(&'static str),
    /// So many jobs, or on older versions of the engine an error that says this.
    JobsUnlessOld(usize, &'static str),
}

use Wanted::{Jobs, JobsUnlessOld, Refused, Shows};

/// One call of a program.
pub(crate) struct Insert {
    pub(crate) what: &'static str,
    pub(crate) sql: &'static str,
    /// A JSON array of the values to bind; empty for none.
    pub(crate) parameters: &'static str,
    wanted: Wanted,
}

/// What a program said.
pub(crate) struct Told {
    pub(crate) is_ok: bool,
    pub(crate) text: String,
}

impl Insert {
    /// Tells what is wrong, if anything is.
    pub(crate) fn judge(&self, told: &Told, made: usize) -> Result<(), String> {
        let (is_ok, jobs, text) = match self.wanted {
            Jobs(jobs) => (true, jobs, ""),
            Shows(jobs, text) => (true, jobs, text),
            Refused(text) => (false, 0, text),
            JobsUnlessOld(_, text) if !told.is_ok => (false, 0, text),
            JobsUnlessOld(jobs, _) => (true, jobs, ""),
        };
        let as_wanted = told.is_ok == is_ok && made == jobs && told.text.contains(text);
        as_wanted.then_some(()).ok_or_else(|| {
            format!(
                "ok is {}, {made} jobs, not {is_ok}, {jobs}, {text:?}: {}",
                told.is_ok, told.text
            )
        })
    }
}

/// All inserts for a program of an engine.
pub(crate) fn of(engine: Engine, takes_parameters: bool) -> Vec<Insert> {
    let plain = match engine {
        Engine::Sqlite => sqlite::PLAIN.as_slice(),
        Engine::Postgres => postgres::PLAIN.as_slice(),
    };
    let own = match (engine, takes_parameters) {
        (Engine::Sqlite, true) => sqlite::BOUND.as_slice(),
        (Engine::Postgres, true) => postgres::BOUND.as_slice(),
        (Engine::Sqlite, false) => [].as_slice(),
        (Engine::Postgres, false) => postgres::PSQL.as_slice(),
    };
    let plain = plain.iter().map(|(what, sql, wanted)| (*what, *sql, "", wanted));
    let own = own.iter().map(|(what, sql, values, wanted)| (*what, *sql, *values, wanted));
    let make = |(what, sql, parameters, wanted): (_, _, _, &Wanted)| Insert {
        what,
        sql,
        parameters,
        wanted: *wanted,
    };
    plain.chain(own).map(make).collect()
}
