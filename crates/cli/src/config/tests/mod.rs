//! Owns the fixtures of these tests, and those of values and documents. Refuses to know how a message is made.

use std::path::PathBuf;

mod deploy;
mod rules;
mod secrets;
mod whole;

use crate::role::{self, Role};

use super::{Config, KEYS, Kind, Loaded, Problems, Value, defaults, load, show_yaml};

/// A file that goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: impl AsRef<[u8]>) -> Self {
        let folder = std::env::temp_dir().join(format!("leasehold-config-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.yaml"));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn pairs(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn file(name: &str, text: impl AsRef<[u8]>) -> Result<Loaded, Problems> {
    let file = File::new(name, text);
    load(Some(&file.0), &[])
}

fn env(environment: &[(&str, &str)]) -> Result<Loaded, Problems> {
    load(None, &pairs(environment))
}

/// The problems of a file, the folder of the path taken off.
#[track_caller]
fn refused(name: &str, text: impl AsRef<[u8]>) -> String {
    let problems = file(name, text).expect_err("is refused").to_string();
    let lines = problems
        .lines()
        .map(|line| line.find(&format!("{name}.yaml")).map_or(line, |at| &line[at..]));
    lines.collect::<Vec<_>>().join("\n")
}

/// Proves: CFG-1
#[test]
fn text_is_never_taken_for_something_else() {
    let loaded = file(
        "texts",
        "producer:\n  scan_dir: NO\n  rate_limit_key: 1e3\nworker:\n  queues: {high: on, low: 0x10}\n",
    );
    let config = loaded.unwrap().config;
    assert_eq!(config.text("producer.scan_dir"), "NO");
    assert_eq!(config.text("producer.rate_limit_key"), "1e3");
    for text in ["off", "12:30:00", "1_000", "010", "null_", "1.5"] {
        let config = file("texts", format!("producer: {{scan_dir: {text}}}\n")).unwrap().config;
        assert_eq!(config.text("producer.scan_dir"), text);
    }
    for nothing in ["~", "null", ""] {
        let got = refused("nothing", format!("producer: {{scan_dir: {nothing}}}\n"));
        assert!(got.contains("producer.scan_dir: "), "{nothing}: {got}");
    }
    let queues = [("high", "on"), ("low", "0x10")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(config.map("worker.queues"), queues);
}

/// Proves: CFG-1
#[test]
fn values_that_only_look_right_are_refused() {
    for number in [
        "0x10", "010", "1_000", "12:30:00", "1e3", "1.0", "+5", "\"5\"", "on", "~", "", "[5]",
        "{a: 5}",
    ] {
        let got = refused("numbers", format!("worker:\n  count: {number}\n"));
        assert!(got.contains("worker.count: "), "{number}: {got}");
    }
    for flag in ["on", "yes", "True", "1", "'true'"] {
        let got = refused("flags", format!("observability:\n  tracing:\n    enabled: {flag}\n"));
        assert!(got.contains("observability.tracing.enabled: "), "{flag}: {got}");
    }
    for (length, why) in [
        ("30", "has no unit"),
        ("0s", "must be more than nothing"),
        ("-1s", "is not understood"),
        ("1.5h", "is not understood"),
        ("30 S", "is not understood"),
        ("12:30:00", "is not understood"),
        ("30s1m", "has its units out of order"),
        ("1s1s", "has its units out of order"),
        ("''", "is empty"),
        ("99999999999d", "is longer than a hundred years"),
    ] {
        let got = refused("durations", format!("worker:\n  heartbeat_ttl: {length}\n"));
        assert!(got.contains("durations.yaml:2:18: worker.heartbeat_ttl: "), "{got}");
        assert!(got.contains(why), "{length}: {got}");
    }
}

/// Proves: CFG-1
#[test]
fn keys_are_known_and_given_once() {
    let got = refused("unknown", "worker:\n  hartbeat_ttl: 30s\n");
    assert_eq!(
        got,
        "unknown.yaml:2:3: worker.hartbeat_ttl: is no key of this configuration; is worker.heartbeat_ttl meant?"
    );
    let got = refused("unknown", "wroker: {count: 4}\nelsewhere: 1\n");
    assert!(
        got.contains("unknown.yaml:1:1: wroker: is no key of this configuration; is worker meant?"),
        "{got}"
    );
    assert!(
        got.contains("unknown.yaml:2:1: elsewhere: is no key of this configuration; `leasehold"),
        "{got}"
    );
    let got = refused("twice", "worker:\n  count: 4\n  count: 5\n");
    assert_eq!(got, "twice.yaml:3:3: the key count was given in line 2 already");
    let got = refused("twice", "worker: {count: 4}\nworker: {count: 4}\n");
    assert_eq!(got, "twice.yaml:2:1: the key worker was given in line 1 already");
}

/// Proves: CFG-1
#[test]
fn a_redis_section_is_told_what_to_write() {
    let got = refused("redis", "redis:\n  addr: localhost:6379\n");
    assert!(
        got.starts_with("redis.yaml:1:1: redis: there is no redis section: write `store:`"),
        "{got}"
    );
    assert!(got.contains("postgres://user@host/database"), "{got}");
}

/// Proves: CFG-1
#[test]
fn a_broken_document_is_one_clear_error() {
    let bomb = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n";
    for (name, text, wanted) in [
        ("bomb", bomb, "bomb.yaml:1:"),
        ("merge", "worker:\n  <<: {count: 3}\n", "merge.yaml:2:3: anchors, aliases and merge keys"),
        ("tag", "worker: {count: !!int 3}\n", "tags are not used here"),
        ("two", "worker: {count: 3}\n---\nworker: {count: 4}\n", "a second document begins"),
        ("tab", "worker:\n\tcount: 3\n", "is not YAML"),
        ("open", "worker: {count: 3\n", "is not YAML"),
        ("list", "- worker\n", "must be sections with keys in them"),
        ("section", "worker: 3\n", "section.yaml:1:9: worker: is a section"),
        ("unset", "producer: {scan_dir: '${HOME}'}\n", "nothing is replaced inside a value"),
        ("unset", "producer: {scan_dir: '${A:-x}'}\n", "nothing is replaced inside a value"),
        ("control", "producer: {scan_dir: \"a\\u0000\"}\n", "holds the control character U+0000"),
    ] {
        let got = refused(name, text);
        assert!(got.contains(wanted), "{name}: {got}");
        assert_eq!(got.lines().count(), 1, "{got}");
    }
    let deep = format!("worker: {}", "[".repeat(10_000));
    let got = refused("deep", deep);
    assert!(got.contains("lies deeper than 16 levels") || got.contains("is not YAML"), "{got}");
    assert!(
        refused("large", vec![b'#'; 1024 * 1024 + 1]).contains("at most 1048576 bytes are read")
    );
    let endless = load(Some(std::path::Path::new("/dev/zero")), &[]).unwrap_err().to_string();
    assert!(endless.contains("at most 1048576 bytes are read"), "{endless}");
    assert_eq!(refused("bytes", b"worker:\n  count: \xff\n"), "bytes.yaml:2:1: is not UTF-8 text");
    let folder = std::env::temp_dir();
    assert!(load(Some(&folder), &[]).unwrap_err().to_string().contains("cannot be read"));
}

/// Proves: CFG-1
#[test]
fn no_file_and_an_empty_one_mean_the_defaults() {
    let missing = std::env::temp_dir().join("leasehold-no-such-file.yaml");
    let problems = load(Some(&missing), &[]).unwrap_err().to_string();
    let named = problems.starts_with(&missing.display().to_string());
    assert!(named && problems.contains("there is no such file"), "{problems}");
    assert_eq!(load(None, &[]).unwrap().config.int("worker.count"), 4);
    for text in ["", "\n", "# nothing\n", "---\n", "~\n", "worker:\n"] {
        let config = file("empty", text).unwrap().config;
        assert_eq!(config.duration("worker.heartbeat_ttl").as_secs(), 30, "{text:?}");
    }
    let dollars = file("dollars", "\u{feff}producer: {scan_dir: a$$b}\n").unwrap().config;
    assert_eq!(dollars.text("producer.scan_dir"), "a$$b");
}

/// Proves: CFG-1
#[test]
fn the_environment_overrides_the_file() {
    let file = File::new("over", "worker:\n  count: 8\n  heartbeat_ttl: 20s\n");
    let environment = pairs(&[
        ("WORKER_COUNT", "16"),
        ("WORKER_PRIORITIES", "a, b"),
        ("WORKER_QUEUES", "a=first,b=second"),
        ("PRODUCER_DEFAULT_PRIORITY", "b"),
        ("OBSERVABILITY_TRACING_ENABLED", "false"),
        ("CIRCUIT_BREAKER_FAILURE_THRESHOLD", "0.25"),
    ]);
    let config = load(Some(&file.0), &environment).unwrap().config;
    assert_eq!(config.int("worker.count"), 16);
    assert_eq!(config.origin("worker.count").to_string(), "environment WORKER_COUNT");
    assert!(config.origin("worker.heartbeat_ttl").to_string().ends_with("over.yaml:3:18"));
    assert_eq!(config.list("worker.priorities"), ["a", "b"]);
    assert!((config.fraction("circuit_breaker.failure_threshold") - 0.25).abs() < f64::EPSILON);
    for (name, text, wanted) in [
        ("WORKER_COUNT", "", "environment WORKER_COUNT: worker.count: \"\": is not a whole number"),
        ("WORKER_COUNT", "0", "environment WORKER_COUNT: worker.count: \"0\": must be at least 1"),
        ("WORKER_PRIORITIES", "a,,b", "worker.priorities: \"a,,b\": holds an empty entry"),
        ("WORKER_QUEUES", "a", "is written name=text,name=text"),
        ("WORKER_QUEUES", "a=x,a=y", "names a twice"),
        ("WORKER_HEARTBEAT_TTL", "30", "has no unit"),
    ] {
        let got = env(&[(name, text)]).unwrap_err().to_string();
        assert!(got.contains(wanted), "{got}");
    }
}

/// Proves: CFG-3
#[test]
fn what_has_no_effect_is_named() {
    let loaded = env(&[
        ("WORKER_HEARBEAT_TTL", "5s"),
        ("WORKER_PROCESSING_LIST_PATTERN", "x:%s"),
        ("STORE_POOL_SIZE_MULTIPLIER", "3"),
        ("WORKER_QUEUES", "high=h,low=l,spare=s"),
        ("WORKERS_OF_SOMEBODY_ELSE", "1"),
    ]);
    let notes: Vec<String> = loaded.unwrap().notes.iter().map(ToString::to_string).collect();
    let wanted = [
        "environment WORKER_HEARBEAT_TTL: WORKER_HEARBEAT_TTL: has no effect; is WORKER_HEARTBEAT_TTL meant?",
        "environment STORE_POOL_SIZE_MULTIPLIER: store.pool_size_multiplier: has no effect on SQLite",
        "environment WORKER_PROCESSING_LIST_PATTERN: worker.processing_list_pattern: has no effect: leases \
         stand in the job's row; there is no list for each worker",
        "environment WORKER_QUEUES: worker.queues.spare: has no effect: spare is not in worker.priorities, \
         so its queue is never served",
    ];
    assert_eq!(notes, wanted);
}

/// Proves: CFG-2
#[test]
fn the_printed_defaults_hold_every_key_and_load_again() {
    let text = defaults();
    let loaded = file("defaults", &text).unwrap();
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    for key in KEYS {
        let is_given = key.example.is_none();
        assert_eq!(loaded.config.is_set(key.path), is_given, "{} in the file", key.path);
        let same = format!("{:?}", loaded.config.value(key.path));
        assert_eq!(same, format!("{:?}", Config::with_defaults().value(key.path)), "{}", key.path);
    }
    let shown = show_yaml(&loaded.config);
    assert_eq!(shown.lines().count(), text.lines().count());
}

/// What a role would still refuse of them is what has to be chosen; with the example in its place it is nothing.
///
/// Proves: CFG-2
#[test]
fn the_printed_defaults_pass_but_for_what_has_to_be_chosen() {
    let text = defaults();
    let check = |text: &str| role::check(Role::All, &file("checked", text).unwrap().config);
    let problems = check(&text).expect_err("no command").0;
    let chosen: Vec<&str> = KEYS.iter().filter_map(|key| key.example.and(Some(key.path))).collect();
    assert_eq!(problems.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), chosen);
    assert_eq!(role::check(Role::Producer, &file("checked", &text).unwrap().config), Ok(()));
    // Every machine that runs the tests has this one.
    let text = text.replace("  # command: [gzip,", "  command: [sh,");
    assert_eq!(check(&text), Ok(()));
}

#[test]
fn every_default_is_a_value_of_its_kind() {
    let config = Config::with_defaults();
    for key in KEYS {
        let fits = matches!(
            (key.kind, config.value(key.path)),
            (Kind::Text, Some(Value::Text(_)))
                | (Kind::Int(..), Some(Value::Int(_)))
                | (Kind::Fraction, Some(Value::Fraction(_)))
                | (Kind::Bool, Some(Value::Bool(_)))
                | (Kind::Duration, Some(Value::Duration(_)))
                | (Kind::List, Some(Value::List(_)))
                | (Kind::Map, Some(Value::Map(_)))
                | (Kind::Secret, Some(Value::Secret(_)))
        );
        assert!(fits, "{}", key.path);
    }
    assert!(load(None, &[]).unwrap().notes.is_empty());
}
