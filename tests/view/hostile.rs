//! Owns the inserts nobody would write: columns of wrong types and sizes, broken documents, every
//! conflict form, transactions that end oddly, several writers at once.

use leasehold_sqlite::rusqlite::Connection;

use crate::place::{Engine, Place};

/// A small generator of its own, so that a seed means the same on every version of a crate.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("a number")
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// What may stand in each column; the first two are well chosen.
type Columns = [&'static [&'static str]; 8];

const SQLITE: Columns = [
    &["null", "'q'", "'default'", "''", "7", "x'71'", "'\u{e4}'", "char(0)", "hex(zeroblob(200))"],
    &["'k'", "'kind ' || abs(random() % 9)", "null", "cast(x'6bff' as text)", "'a' || char(10)"],
    &[
        "'{\"a\": [1, 2.5e3]}'",
        "' [\"\u{e9}\u{1f600}\"] '",
        "'[\"\\ud83d\\ude00\"]'",
        "'1e999'",
        "'-0'",
        "null",
        "x'7b7d'",
        "5",
        "'{'",
        "'01'",
        "'[1,]'",
        "'{a:1}'",
        "'[\"' || char(9) || '\"]'",
        "'{\"a\":1,\"\\u0061\":2}'",
        "'[\"\\ud800\"]'",
        "'[\"\\\\ud83d\\ude00\"]'",
        "cast(x'22ed80a022' as text)",
        "cast(x'22c3' as text)",
        "cast(x'efbbbf5b5d' as text)",
        "'[1]' || char(0)",
        "replace(hex(zeroblob(64)), '0', '[') || replace(hex(zeroblob(64)), '0', ']')",
        "replace(hex(zeroblob(65)), '0', '[') || replace(hex(zeroblob(65)), '0', ']')",
        "'\"' || hex(zeroblob(600000)) || '\"'",
    ],
    &["null", "''", "'s'", "1", "x'00'", "'\u{e4}'"],
    &["null", "'key ' || abs(random() % 400)", "'one'", "'held'", "''", "3", "x'00'", "'\u{1}'"],
    &["null", "-5", "32767", "-32768", "40000", "'high'", "1.5", "1e300"],
    &["null", "0", "4102444800000000", "253402300799999999", "-1", "9223372036854775807", "'now'"],
    &["null", "1", "65535", "0", "65536", "x''"],
];

const POSTGRES: Columns = [
    &["null", "'q'", "'default'", "''", "7::text", "'\u{e4}'", "e'a\\nb'", "repeat('q', 256)"],
    &["'k'", "'kind ' || floor(random() * 9)", "null", "e'a\\t'", "repeat('k', 256)"],
    &[
        "'{\"a\": [1, 2.5e3]}'",
        "' [\"\u{e9}\u{1f600}\"] '",
        "'[\"\\ud83d\\ude00\"]'",
        "'1e999'",
        "'1e999999'",
        "'-0'",
        "null",
        "5::text",
        "'{'",
        "'01'",
        "'[1,]'",
        "'NaN'",
        "e'[\"\\t\"]'",
        "'{\"a\":1,\"\\u0061\":2}'",
        "'[\"\\ud800\"]'",
        "'[\"\\\\ud83d\\ude00\"]'",
        "'[\"\\u0000\"]'",
        "e'\\ufeff[]'",
        "'[1] garbage'",
        "repeat('[', 128) || repeat(']', 128)",
        "repeat('[', 129) || repeat(']', 129)",
        "repeat('[', 20000) || repeat(']', 20000)",
        "'\"' || repeat('x', 1048577) || '\"'",
        "repeat('9', 2000)",
    ],
    &["null", "''", "'s'", "1::text", "e'\\x01'", "'\u{e4}'"],
    &["null", "'key ' || floor(random() * 400)", "'one'", "'held'", "''", "3::text", "e'\\x01'"],
    &["null", "-5", "32767", "-32768", "40000", "2147483648", "'high'", "1.5"],
    &[
        "null",
        "now()",
        "'2100-01-01'",
        "'9999-12-31 23:59:59.999999+00'",
        "'epoch'",
        "'infinity'",
        "'-infinity'",
        "'10000-01-01'",
        "'1900-01-01'",
    ],
    &["null", "1", "65535", "0", "65536", "-1"],
];

const NAMES: &str = "(queue, kind, payload, scope, key, priority, run_at, max_attempts)";

fn values(dice: &mut Dice, columns: &Columns) -> String {
    let drawn = columns.map(|all| {
        // Well chosen most of the time, or nothing would ever get in.
        if dice.roll(8) > 0 { dice.pick(&all[..2]) } else { dice.pick(all) }
    });
    format!("({})", drawn.join(", "))
}

fn sqlite(dice: &mut Dice, view: &str) -> String {
    let form = dice.pick(&[
        "insert",
        "insert or replace",
        "replace",
        "insert or ignore",
        "insert or fail",
        "insert or abort",
        "insert or rollback",
    ]);
    let first = values(dice, &SQLITE);
    let one = format!("{form} into {view} {NAMES}");
    match dice.roll(16) {
        0 => format!("{one} values {first}, {}", values(dice, &SQLITE)),
        1 => format!("{one} values {first} returning *"),
        2 => format!("{one} values {first} on conflict do nothing"),
        3 => format!("{one} values {first} on conflict (key) do update set kind = 'x'"),
        4 => format!("{one} select * from (values {first}) union all values {first}"),
        5 => format!("begin; {one} values {first}; rollback"),
        6 => format!("begin; savepoint s; {one} values {first}; rollback to s; {one} values {first}; commit"),
        7 => format!("begin immediate; {one} values {first}; {one} values {first}; end"),
        8 => dice
            .pick(&[
                "pragma ignore_check_constraints = 1",
                "pragma recursive_triggers = 1",
                "pragma trusted_schema = 0",
                "pragma case_sensitive_like = 1",
                "pragma reverse_unordered_selects = 1",
                "pragma foreign_keys = 1",
                "pragma legacy_alter_table = 1",
                "update leasehold_enqueue set kind = 'x'",
                "delete from leasehold_enqueue",
                "insert into leasehold_enqueue default values",
                "insert into leasehold_enqueue_row (id, now, kind, payload) values (null, null, 'k', '1')",
            ])
            .to_owned(),
        _ => format!("{one} values {first}"),
    }
}

fn postgres(dice: &mut Dice, view: &str) -> String {
    let first = values(dice, &POSTGRES);
    let one = format!("insert into {view} {NAMES}");
    match dice.roll(20) {
        0 => format!("{one} values {first}, {}", values(dice, &POSTGRES)),
        1 => format!("{one} values {first} returning *"),
        2 => format!("{one} values {first} on conflict do nothing"),
        3 => format!("{one} values {first} on conflict (key) do update set kind = 'x'"),
        4 => format!("with made as ({one} values {first} returning key) {one} values {first}"),
        5 => format!("begin; {one} values {first}; rollback"),
        6 => format!(
            "begin; savepoint s; {one} values {first}; rollback to s; {one} values {first}; commit"
        ),
        7 => format!(
            "begin isolation level {}; {one} values {first}; {one} values {}; commit",
            dice.pick(&["serializable", "repeatable read", "read committed"]),
            values(dice, &POSTGRES)
        ),
        8 => format!("{one} overriding system value values {first}"),
        9 => format!("do $$ begin {one} values {first}; exception when others then null; end $$"),
        10 => format!(
            "merge into {view} v using (values (1)) as s (n) on false when not matched then \
             insert {NAMES} values {first}"
        ),
        11 => dice
            .pick(&[
                "set datestyle = 'SQL, DMY'",
                "set timezone = 'Pacific/Apia'",
                "set intervalstyle = 'iso_8601'",
                "set extra_float_digits = -15",
                "set escape_string_warning = off",
                "set client_encoding = 'LATIN1'",
                "set search_path = pg_temp, public",
                "create temp table if not exists keys (like pg_class)",
                "create domain pg_temp.jsonb as pg_catalog.text",
                "create domain pg_temp.timestamptz as pg_catalog.text",
                "set default_transaction_isolation = 'serializable'",
                "reset all",
                "discard temp",
            ])
            .to_owned(),
        12 => dice
            .pick(&[
                "update VIEW set kind = 'x'",
                "delete from VIEW",
                "insert into VIEW default values",
                "truncate VIEW",
                "alter view VIEW rename to gone",
                "drop view VIEW",
                "create or replace temp view enqueue as select 1; select 1",
            ])
            .replace("VIEW", view),
        _ => format!("{one} values {first}"),
    }
}

/// Inserts as often as the environment says; how many single inserts may have gone in.
pub(crate) async fn insert(place: &Place) -> usize {
    let number = std::env::var("LEASEHOLD_HOSTILE_INSERTS").ok();
    let number: usize = number.map_or(2_000, |text| text.parse().expect("a number"));
    let taken = match place.engine {
        Engine::Sqlite => both_writers(place, number),
        Engine::Postgres => three_sessions(place, number).await,
    };
    assert!(taken > number / 20 && taken < number, "{taken} of {number} were taken");
    // Some statements hold two rows.
    taken * 2
}

fn both_writers(place: &Place, number: usize) -> usize {
    let write = |seed: u64| {
        let conn = Connection::open(place.address()).expect("the file");
        conn.busy_timeout(std::time::Duration::from_secs(60)).expect("a wait");
        let mut dice = Dice(seed);
        let mut taken = 0;
        for _ in 0..number / 2 {
            taken += usize::from(conn.execute_batch(&sqlite(&mut dice, &place.view())).is_ok());
            if !conn.is_autocommit() {
                conn.execute_batch("rollback").expect("rolled back");
            }
        }
        taken
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| write(0x5eed_1234_5678_9abc));
        write(0x0dd_b1a5_ed5e_ed01) + other.join().expect("the other writer")
    })
}

async fn three_sessions(place: &Place, number: usize) -> usize {
    place.let_in().await;
    let write = async |seed: u64| {
        let session = place.session().await;
        let role = format!("set session authorization {}", place.role());
        session.batch_execute(&role).await.expect("nobody's rights");
        let mut dice = Dice(seed);
        let mut taken = 0;
        for _ in 0..number / 3 {
            let done = session.batch_execute(&postgres(&mut dice, &place.view())).await;
            taken += usize::from(done.is_ok());
            if done.is_err() {
                session.batch_execute("rollback").await.expect("the session goes on");
            }
        }
        taken
    };
    let (one, two, three) = tokio::join!(
        write(0x5eed_1234_5678_9abc),
        write(0x0dd_b1a5_ed5e_ed01),
        write(0x00c0_ffee_dead_beef)
    );
    one + two + three
}
