//! Owns what programs send to SQLite's view, and what has to come of it.

use super::Wanted::{self, Jobs, JobsUnlessOld, Refused, Shows};

pub(super) const PLAIN: [(&str, &str, Wanted); 34] = [
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

pub(super) const BOUND: [(&str, &str, &str, Wanted); 7] = [
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
