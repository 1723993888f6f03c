//! Owns what programs send to PostgreSQL's view, and what has to come of it.

use super::Wanted::{self, Jobs, JobsUnlessOld, Refused, Shows};

pub(super) const PLAIN: [(&str, &str, Wanted); 30] = [
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

pub(super) const BOUND: [(&str, &str, &str, Wanted); 7] = [
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
pub(super) const PSQL: [(&str, &str, &str, Wanted); 3] = [
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
