//! Owns the table of keys: name, kind, default, what it does. Knows nothing of files and rules.

/// What a key's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number between the bounds, both included.
    Int(i64, i64),
    /// A decimal fraction.
    Fraction,
    /// `true` or `false`.
    Bool,
    /// A number with a unit, such as `30s`.
    Duration,
    /// Several texts.
    List,
    /// Texts by name; in an environment variable `name=text,name=text`.
    Map,
    /// A text that only the environment or a file may hold.
    Secret,
}

/// Whether a key changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does, on both engines.
    Both,
    /// It does on PostgreSQL only.
    Postgres,
    /// It is accepted so that existing files load, and does nothing; why.
    Nothing(&'static str),
}

/// One key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name, its sections joined by points.
    pub path: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Its default, as it would be written in an environment variable.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Whether it has an effect.
    pub effect: Effect,
    /// What it may look like, for a key that has no default that anybody could work with.
    pub example: Option<&'static str>,
}

impl Key {
    /// Finds a key by its name.
    #[must_use]
    pub fn find(path: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.path == path)
    }

    /// Gives the environment variable that overrides the key.
    #[must_use]
    pub fn variable(&self) -> String {
        self.path.replace('.', "_").to_uppercase()
    }
}

const fn key(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { path, kind, default, about, effect: Effect::Both, example: None }
}

const fn postgres(mut key: Key) -> Key {
    key.effect = Effect::Postgres;
    key
}

/// A key that has to be given: no default of it would do.
const fn chosen(mut key: Key, example: &'static str) -> Key {
    key.example = Some(example);
    key
}

const fn idle(mut key: Key, why: &'static str) -> Key {
    key.effect = Effect::Nothing(why);
    key
}

const fn spans(key: Key) -> Key {
    if cfg!(feature = "otel") { key } else { idle(key, NO_SPANS) }
}

/// Bounds of a number that only has to be sensible.
const COUNT_MAX: i64 = 1_000_000;
const NO_SPANS: &str = "this build sends no spans: it lacks the feature otel";
const NO_LISTS: &str = "leases stand in the job's row; there is no list for each worker";

/// Every key, in the order in which a file shows them.
pub const KEYS: &[Key] = &[
    key(
        "store.url",
        Kind::Text,
        "sqlite:leasehold.db",
        "where the database is: sqlite:PATH or postgres://USER@HOST:PORT/DATABASE",
    ),
    postgres(key("store.addr", Kind::Text, "", "host:port of the server, in place of store.url")),
    postgres(key("store.username", Kind::Text, "", "the role, where store.url names none")),
    postgres(key("store.password", Kind::Secret, "", "the role's password: env:NAME or file:PATH")),
    postgres(key("store.db", Kind::Text, "", "the database, beside store.addr")),
    postgres(key(
        "store.pool_size_multiplier",
        Kind::Int(1, 64),
        "8",
        "connections for each processor",
    )),
    idle(
        key("store.min_idle_conns", Kind::Int(0, COUNT_MAX), "0", "connections kept while idle"),
        "connections are opened when first needed and then kept",
    ),
    postgres(key(
        "store.dial_timeout",
        Kind::Duration,
        "10s",
        "longest wait for a connection to open",
    )),
    idle(
        key("store.read_timeout", Kind::Duration, "30s", "longest wait for a reply"),
        "the store asks a silent server for life after 30s by itself",
    ),
    idle(
        key("store.write_timeout", Kind::Duration, "30s", "longest wait to send"),
        "the store asks a silent server for life after 30s by itself",
    ),
    idle(
        key(
            "store.max_retries",
            Kind::Int(0, 1000),
            "5",
            "tries of a transaction that must restart",
        ),
        "the store's own bound of five tries holds",
    ),
    key("worker.count", Kind::Int(1, 10_000), "4", "jobs that one process runs at once"),
    key(
        "worker.heartbeat_ttl",
        Kind::Duration,
        "30s",
        "the lease: how long a silent worker keeps a job",
    ),
    key("worker.max_retries", Kind::Int(0, 1000), "4", "tries after the first one"),
    key("worker.backoff.base", Kind::Duration, "1s", "the first pause before another try"),
    key("worker.backoff.max", Kind::Duration, "60s", "the longest pause before another try"),
    key("worker.priorities", Kind::List, "high,low", "names of priorities, the first served first"),
    key("worker.queues", Kind::Map, "high=high,low=low", "the queue of each priority"),
    idle(
        key(
            "worker.processing_list_pattern",
            Kind::Text,
            "worker:%s:processing",
            "a list of each worker's jobs, %s its id",
        ),
        NO_LISTS,
    ),
    idle(
        key(
            "worker.heartbeat_key_pattern",
            Kind::Text,
            "worker:%s:heartbeat",
            "a key of each worker's heartbeat, %s its id",
        ),
        NO_LISTS,
    ),
    key(
        "worker.completed_list",
        Kind::Text,
        "completed",
        "under which name `leasehold list` lists the succeeded jobs",
    ),
    key(
        "worker.dead_letter_list",
        Kind::Text,
        "dead_letter",
        "under which name `leasehold list` lists the dead letters",
    ),
    key(
        "worker.brpoplpush_timeout",
        Kind::Duration,
        "1s",
        "longest wait after a fetch that found nothing",
    ),
    chosen(
        key(
            "worker.command",
            Kind::List,
            "",
            "program and arguments for each file; {path}, {job_id}, {token} and {attempt} are replaced",
        ),
        "[gzip, --keep, \"{path}\"]",
    ),
    key("worker.command_timeout", Kind::Duration, "5m", "how long a command may run"),
    key(
        "worker.command_env",
        Kind::List,
        "PATH,HOME,LANG,TZ,TMPDIR",
        "variables that a command gets of ours",
    ),
    key(
        "worker.command_output_max",
        Kind::Int(0, 1_000_000),
        "65536",
        "bytes of its output that are kept",
    ),
    key(
        "worker.exit_codes",
        Kind::Map,
        "64=bug,65=validation,66=not_found,69=upstream,73=upstream,74=upstream,75=network,77=auth,78=bug",
        "class of failure of each exit code; any other code but 0 is upstream",
    ),
    key("worker.grace", Kind::Duration, "20s", "how long a shutdown waits for commands"),
    key("producer.scan_interval", Kind::Duration, "10s", "pause between two scans"),
    key(
        "producer.watch",
        Kind::Bool,
        "false",
        "whether a change in the folder brings the next scan forward",
    ),
    key("producer.scan_dir", Kind::Text, ".", "the folder that is scanned"),
    key("producer.include_globs", Kind::List, "**/*", "which files are taken"),
    key("producer.exclude_globs", Kind::List, "", "which of those are left out"),
    key("producer.default_priority", Kind::Text, "low", "priority of a file with no other"),
    key(
        "producer.high_priority_exts",
        Kind::List,
        "",
        "extensions of the first priority, such as .pdf",
    ),
    key(
        "producer.rate_limit_per_sec",
        Kind::Int(0, COUNT_MAX),
        "0",
        "files a second over all producers; 0: no limit",
    ),
    key(
        "producer.rate_limit_key",
        Kind::Text,
        "producer",
        "the name under which producers share the limit",
    ),
    key(
        "circuit_breaker.failure_threshold",
        Kind::Fraction,
        "0.5",
        "share of failed commands from which a queue is left alone",
    ),
    key("circuit_breaker.window", Kind::Duration, "60s", "how far back results count"),
    key("circuit_breaker.cooldown_period", Kind::Duration, "30s", "how long an open breaker rests"),
    key(
        "circuit_breaker.min_samples",
        Kind::Int(1, COUNT_MAX),
        "20",
        "results without which it stays closed",
    ),
    key("observability.metrics_port", Kind::Int(0, 65_535), "9090", "port of /metrics; 0: none"),
    key(
        "observability.metrics_host",
        Kind::Text,
        "127.0.0.1",
        "address of /metrics; loopback unless others are to read it",
    ),
    key("observability.log_level", Kind::Text, "info", "trace, debug, info, warn or error"),
    key(
        "observability.queue_sample_interval",
        Kind::Duration,
        "5s",
        "time between two counts of the queues",
    ),
    spans(key("observability.tracing.enabled", Kind::Bool, "false", "whether spans are exported")),
    spans(key(
        "observability.tracing.endpoint",
        Kind::Text,
        "",
        "the OpenTelemetry collector, an http(s) URL; /v1/traces is added",
    )),
    key(
        "reaper.interval",
        Kind::Duration,
        "5s",
        "time between two rounds of upkeep: lapsed leases, old rows; ±25 %",
    ),
];
