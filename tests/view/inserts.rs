//! Owns the inserts that programs of other languages send in each form their engine has, and what has to
//! come of each. `VIEW` stands for the view.

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
        Engine::Sqlite => SQLITE.as_slice(),
        Engine::Postgres => POSTGRES.as_slice(),
    };
    let own = match (engine, takes_parameters) {
        (Engine::Sqlite, true) => SQLITE_BOUND.as_slice(),
        (Engine::Postgres, true) => POSTGRES_BOUND.as_slice(),
        (Engine::Sqlite, false) => [].as_slice(),
        (Engine::Postgres, false) => PSQL.as_slice(),
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

const SQLITE: [(&str, &str, Wanted); 34] = [
    (
        "plain",
        "insert into VIEW (queue, kind, payload, key) values ('mail', 'welcome', '{\"user\": 7}', 'w 7')",
        Jobs(1),
    ),
    ("known key", "insert into VIEW (kind, payload, key) values ('other', '8', 'w 7')", Jobs(0)),
    (
        "or replace, known key",
        "insert or replace into VIEW (kind, payload, key) values ('other', '8', 'w 7')",
        Jobs(0),
    ),
    (
        "replace, a leased job's key",
        "replace into VIEW (kind, payload, key) values ('other', '8', 'held')",
        Jobs(0),
    ),
    (
        "or ignore, an ended job's key",
        "insert or ignore into VIEW (kind, payload, key) values ('other', '8', 'done')",
        Jobs(0),
    ),
    (
        "or fail, known key",
        "insert or fail into VIEW (kind, payload, key) values ('other', '8', 'one')",
        Jobs(0),
    ),
    (
        "or abort, known key",
        "insert or abort into VIEW (kind, payload, key) values ('other', '8', 'one')",
        Jobs(0),
    ),
    (
        "or rollback, known key",
        "insert or rollback into VIEW (kind, payload, key) values ('other', '8', 'one')",
        Jobs(0),
    ),
    (
        "or replace, new key",
        "insert or replace into VIEW (kind, payload, key) values ('k', '8', 'n 1')",
        Jobs(1),
    ),
    (
        "or ignore, new key",
        "insert or ignore into VIEW (kind, payload, key) values ('k', '8', 'n 2')",
        Jobs(1),
    ),
    (
        "or fail, new key",
        "insert or fail into VIEW (kind, payload, key) values ('k', '8', 'n 3')",
        Jobs(1),
    ),
    (
        "or replace, bad payload",
        "insert or replace into VIEW (kind, payload) values ('k', '{')",
        Refused("payload is a JSON text"),
    ),
    (
        "or ignore, bad payload",
        "insert or ignore into VIEW (kind, payload) values ('k', '{')",
        Refused("payload is a JSON text"),
    ),
    (
        "or ignore, bad name",
        "insert or ignore into VIEW (kind, payload) values ('', '1')",
        Refused("printable ASCII"),
    ),
    (
        "or ignore, bad number",
        "insert or ignore into VIEW (kind, payload, priority) values ('k', '1', 40000)",
        Refused("priority is a whole number"),
    ),
    (
        "or ignore, a scope alone",
        "insert or ignore into VIEW (kind, payload, scope) values ('k', '1', 's')",
        Refused("a scope needs a key"),
    ),
    (
        "or fail, second row bad",
        "insert or fail into VIEW (kind, payload) values ('k', '1'), ('k', '{')",
        Refused("payload is a JSON text"),
    ),
    (
        "upsert, do nothing",
        "insert into VIEW (kind, payload) values ('k', '1') on conflict do nothing",
        Refused("UPSERT"),
    ),
    (
        "upsert, do update",
        "insert into VIEW (kind, payload, key) values ('k', '1', 'one') on conflict (key) do update set kind = 'x'",
        Refused("UPSERT"),
    ),
    (
        "returning",
        "insert into VIEW (kind, payload) values ('shown', '1') returning kind",
        Shows(1, "shown"),
    ),
    (
        "returning, known key",
        "insert into VIEW (kind, payload, key) values ('shown', '1', 'one') returning kind",
        Shows(0, "shown"),
    ),
    (
        "or replace returning",
        "insert or replace into VIEW (kind, payload, key) values ('shown', '1', 'one') returning key",
        Shows(0, "one"),
    ),
    (
        "several rows",
        "insert into VIEW (kind, payload, key) values ('k', '1', 'm 1'), ('k', '2', 'm 2'), ('k', '3', 'm 1')",
        Jobs(2),
    ),
    (
        "from a select",
        "insert into VIEW (kind, payload) with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select 'k', json_object('n', i) from n",
        Jobs(3),
    ),
    (
        "rolled back",
        "begin; insert into VIEW (kind, payload, key) values ('k', '1', 'r 1'); rollback",
        Jobs(0),
    ),
    ("its key is free", "insert into VIEW (kind, payload, key) values ('k', '1', 'r 1')", Jobs(1)),
    (
        "savepoint",
        "begin immediate; insert into VIEW (kind, payload) values ('k', '1'); savepoint a; insert into VIEW (kind, payload) values ('k', '2'); rollback to a; commit",
        Jobs(1),
    ),
    (
        "all columns",
        "insert into VIEW values ('q', 'k', '1', 's', 'all', -5, 4102444800000000, 3)",
        Jobs(1),
    ),
    ("no values", "insert into VIEW default values", Refused("printable ASCII")),
    ("update", "update VIEW set kind = 'x'", Refused("cannot modify")),
    ("delete", "delete from VIEW", Refused("cannot modify")),
    (
        "a distrusted schema",
        "pragma trusted_schema = off; insert into VIEW (kind, payload) values ('k', '1')",
        JobsUnlessOld(1, "unsafe use of"),
    ),
    (
        "checks off, bad number",
        "pragma ignore_check_constraints = on; insert into VIEW (kind, payload, max_attempts) values ('k', '1', 0)",
        Refused("max_attempts"),
    ),
    (
        "recursive triggers",
        "pragma recursive_triggers = on; replace into VIEW (kind, payload, key) values ('k', '1', 'held')",
        Jobs(0),
    ),
];

const SQLITE_BOUND: [(&str, &str, &str, Wanted); 7] = [
    (
        "bound",
        "insert into VIEW (kind, payload, key, priority, run_at) values (?, ?, ?, ?, ?)",
        "[\"k\", \"{\\\"a\\\": 1}\", \"b 1\", 3, 0]",
        Jobs(1),
    ),
    (
        "bound, known key",
        "insert or replace into VIEW (kind, payload, key) values (?, ?, ?)",
        "[\"k\", \"2\", \"b 1\"]",
        Jobs(0),
    ),
    (
        "a float",
        "insert into VIEW (kind, payload, priority) values (?, ?, ?)",
        "[\"k\", \"1\", 1.0]",
        Refused("priority is a whole number"),
    ),
    (
        "a text for a number",
        "insert into VIEW (kind, payload, max_attempts) values (?, ?, ?)",
        "[\"k\", \"1\", \"3\"]",
        Refused("max_attempts"),
    ),
    (
        "no payload",
        "insert into VIEW (kind, payload) values (?, ?)",
        "[\"k\", null]",
        Refused("payload is a JSON text"),
    ),
    (
        "a zero within",
        "insert into VIEW (kind, payload, key) values (?, ?, ?)",
        "[\"k\", \"1\", \"a\\u0000b\"]",
        Refused("printable ASCII"),
    ),
    (
        "beyond the plane",
        "insert into VIEW (kind, payload) values (?, ?)",
        "[\"k\", \"[\\\"\u{1f600}\\\"]\"]",
        Jobs(1),
    ),
];

const POSTGRES: [(&str, &str, Wanted); 30] = [
    (
        "plain",
        "insert into VIEW (queue, kind, payload, key) values ('mail', 'welcome', '{\"user\": 7}', 'w 7')",
        Shows(1, "1"),
    ),
    (
        "known key",
        "insert into VIEW (kind, payload, key) values ('other', '8', 'w 7')",
        Shows(0, "0"),
    ),
    (
        "a leased job's key",
        "insert into VIEW (kind, payload, key) values ('other', '8', 'held')",
        Jobs(0),
    ),
    (
        "an ended job's key",
        "insert into VIEW (kind, payload, key) values ('other', '8', 'done')",
        Jobs(0),
    ),
    (
        "do nothing, known key",
        "insert into VIEW (kind, payload, key) values ('other', '8', 'one') on conflict do nothing",
        Jobs(0),
    ),
    (
        "do nothing, new key",
        "insert into VIEW (kind, payload, key) values ('k', '8', 'n 1') on conflict do nothing",
        Jobs(1),
    ),
    (
        "do nothing, bad payload",
        "insert into VIEW (kind, payload) values ('k', '{') on conflict do nothing",
        Refused("invalid input syntax for type json"),
    ),
    (
        "do nothing, a column",
        "insert into VIEW (kind, payload, key) values ('k', '1', 'one') on conflict (key) do nothing",
        Refused("no unique or exclusion constraint"),
    ),
    (
        "do update",
        "insert into VIEW (kind, payload, key) values ('k', '1', 'one') on conflict (key) do update set kind = 'x'",
        Refused("permission denied"),
    ),
    (
        "returning",
        "insert into VIEW (kind, payload) values ('shown', '1') returning kind",
        Shows(1, "shown"),
    ),
    (
        "returning, known key",
        "insert into VIEW (kind, payload, key) values ('shown', '1', 'one') returning kind",
        Shows(0, "0"),
    ),
    (
        "in a with",
        "with made as (insert into VIEW (kind, payload, key) values ('k', '1', 'c 1'), ('k', '1', 'one') returning key) select string_agg('made ' || key, ',') from made",
        Shows(1, "made c 1"),
    ),
    (
        "several rows",
        "insert into VIEW (kind, payload, key) values ('k', '1', 'm 1'), ('k', '2', 'm 2'), ('k', '3', 'm 1')",
        Shows(2, "2"),
    ),
    (
        "from a select",
        "insert into VIEW (kind, payload) select 'k', jsonb_build_object('n', i)::text from generate_series(1, 3) i",
        Jobs(3),
    ),
    (
        "second row bad",
        "insert into VIEW (kind, payload) values ('k', '1'), ('k', '[\"\\ud800\"]')",
        Refused("surrogate"),
    ),
    ("bad name", "insert into VIEW (kind, payload) values ('', '1')", Refused("printable ASCII")),
    (
        "bad number",
        "insert into VIEW (kind, payload, priority) values ('k', '1', 40000)",
        Refused("priority is from"),
    ),
    (
        "a scope alone",
        "insert into VIEW (kind, payload, scope) values ('k', '1', 's')",
        Refused("a scope needs a key"),
    ),
    (
        "a name twice",
        "insert into VIEW (kind, payload) values ('k', '{\"a\": 1, \"a\": 2}')",
        Refused("payload is a JSON text"),
    ),
    (
        "rolled back",
        "begin; insert into VIEW (kind, payload, key) values ('k', '1', 'r 1'); rollback",
        Jobs(0),
    ),
    ("its key is free", "insert into VIEW (kind, payload, key) values ('k', '1', 'r 1')", Jobs(1)),
    (
        "savepoint",
        "begin; insert into VIEW (kind, payload) values ('k', '1'); savepoint a; insert into VIEW (kind, payload) values ('k', '2'); rollback to a; commit",
        Jobs(1),
    ),
    (
        "serializable",
        "begin isolation level serializable; insert into VIEW (kind, payload, key) values ('k', '1', 'z 1'); commit",
        Jobs(1),
    ),
    (
        "all columns",
        "insert into VIEW values ('q', 'k', '1', 's', 'all', -5, '2100-01-01', 3)",
        Jobs(1),
    ),
    (
        "merge",
        "merge into VIEW v using (values ('k', '1')) as s (kind, payload) on false \
         when not matched then insert (kind, payload) values (s.kind, s.payload)",
        JobsUnlessOld(1, "cannot execute MERGE"),
    ),
    ("no values", "insert into VIEW default values", Refused("printable ASCII")),
    ("update", "update VIEW set kind = 'x'", Refused("cannot update")),
    ("delete", "delete from VIEW", Refused("cannot delete")),
    ("read", "select * from VIEW", Jobs(0)),
    (
        "prepared",
        "prepare p as insert into VIEW (kind, payload, priority) values ($1, $2, $3); execute p ('k', '1', 3); execute p ('k', '2', null)",
        Jobs(2),
    ),
];

const POSTGRES_BOUND: [(&str, &str, &str, Wanted); 7] = [
    (
        "bound",
        "insert into VIEW (kind, payload, key, priority, run_at) values (%s, %s, %s, %s, %s)",
        "[\"k\", \"{\\\"a\\\": 1}\", \"b 1\", 3, \"2020-01-01T00:00:00Z\"]",
        Shows(1, "1"),
    ),
    (
        "bound, known key",
        "insert into VIEW (kind, payload, key) values (%s, %s, %s) on conflict do nothing",
        "[\"k\", \"2\", \"b 1\"]",
        Shows(0, "0"),
    ),
    (
        "a number for a text",
        "insert into VIEW (kind, payload) values (%s, %s)",
        "[\"k\", 7]",
        Jobs(1),
    ),
    (
        "a text for a number",
        "insert into VIEW (kind, payload, max_attempts) values (%s, %s, %s)",
        "[\"k\", \"1\", \"many\"]",
        Refused("invalid input syntax"),
    ),
    (
        "no payload",
        "insert into VIEW (kind, payload) values (%s, %s)",
        "[\"k\", null]",
        Refused("payload is a JSON text"),
    ),
    (
        "a large number",
        "insert into VIEW (kind, payload, priority) values (%s, %s, %s)",
        "[\"k\", \"1\", 4000000000]",
        Refused("out of range"),
    ),
    (
        "beyond the plane",
        "insert into VIEW (kind, payload) values (%s, %s)",
        "[\"k\", \"[\\\"\u{1f600}\\\"]\"]",
        Jobs(1),
    ),
];

/// What only `psql` sends: the rows follow the statement.
const PSQL: [(&str, &str, &str, Wanted); 3] = [
    (
        "copy",
        "copy VIEW (kind, payload, key) from stdin;\nk\t1\tcopy 1\nk\t2\tone\nk\t3\tcopy 3\n\\.\n",
        "",
        Shows(2, "COPY"),
    ),
    (
        "copy, second row bad",
        "copy VIEW (kind, payload) from stdin;\nk\t1\nk\t{\n\\.\n",
        "",
        Refused("invalid input syntax for type json"),
    ),
    ("copy out", "copy VIEW to stdout", "", Refused("cannot copy from view")),
];
