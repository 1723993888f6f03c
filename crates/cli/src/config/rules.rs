//! Owns the rules that a value of the right kind can still break, alone or beside another, and
//! the notes about keys without effect. Each breach names the key, its value and the rule.

use std::time::Duration;

use leasehold::{BucketName, FailureClass, QueueName};
use leasehold_sqlite::mask_url;

use super::duration;
use super::key::{Effect, KEYS, Key};
use super::problem::{Note, Problem};
use super::unknown::Unknown;
use super::values::{Config, Value};

pub(super) fn check(config: &Config, unknown: &Unknown, problems: &mut Vec<Problem>) {
    let mut checks = Checks { config, unknown, problems };
    checks.store();
    checks.worker();
    checks.queues();
    checks.producer();
    checks.breaker();
    checks.observability();
}

/// Names the keys that somebody set and that change nothing.
pub(super) fn note(config: &Config, unknown: &Unknown, notes: &mut Vec<Note>) {
    let may_be_postgres = is_postgres(config) || !unknown.has_none_of(&["store.url", "store.addr"]);
    for key in KEYS.iter().filter(|key| differs(config, key)) {
        let text = match key.effect {
            Effect::Nothing(why) => format!("has no effect: {why}"),
            Effect::Postgres if !may_be_postgres => "has no effect on SQLite".to_owned(),
            Effect::Postgres | Effect::Both => continue,
        };
        notes.push(Note { origin: config.origin(key.path), key: key.path.to_owned(), text });
    }
    if !unknown.has_none_of(&["worker.priorities"]) {
        return;
    }
    let priorities = config.list("worker.priorities");
    for (name, _) in
        config.map("worker.queues").iter().filter(|(name, _)| !priorities.contains(name))
    {
        let text = format!(
            "has no effect: {name} is not in worker.priorities, so its queue is never served"
        );
        let origin = config.origin("worker.queues");
        notes.push(Note { origin, key: format!("worker.queues.{name}"), text });
    }
}

/// Says whether somebody set a key to something else than its default: a printed default that is
/// loaded again is no news.
fn differs(config: &Config, key: &Key) -> bool {
    let value = config.value(key.path);
    config.is_set(key.path) && value.is_some_and(|value| written(value) != key.default)
}

fn is_postgres(config: &Config) -> bool {
    crate::connect::is_postgres(config.text("store.url")) || !config.text("store.addr").is_empty()
}

struct Checks<'a> {
    config: &'a Config,
    unknown: &'a Unknown,
    problems: &'a mut Vec<Problem>,
}

impl Checks<'_> {
    /// Refuses the value of a key, where it is known.
    fn refuse(&mut self, path: &str, rule: impl Into<String>) {
        if !self.unknown.has_none_of(&[path]) {
            return;
        }
        let shown = self.config.value(path).map(written).unwrap_or_default();
        self.problems.push(Problem::of(self.config.origin(path), path, &shown, rule));
    }

    fn store(&mut self) {
        // Its rules ask which of the two there is.
        if !self.unknown.has_none_of(&["store.url", "store.addr"]) {
            return;
        }
        let (url, addr) = (self.config.text("store.url"), self.config.text("store.addr"));
        let origin = self.config.origin("store.url");
        let has_url = Key::find("store.url").is_some_and(|key| differs(self.config, key));
        if has_url && !addr.is_empty() {
            self.refuse("store.addr", "store.url names the place already: give one of the two");
        }
        if url.is_empty() && addr.is_empty() {
            self.refuse("store.url", "must name a database, such as sqlite:jobs.db");
        }
        let in_file = matches!(origin, super::Origin::File { .. });
        if in_file && holds_password(url) {
            let rule = "holds a password: take it out, and write `password: env:NAME` beside it";
            self.problems.push(Problem::at(origin, "store.url", rule));
        }
        let db = self.config.text("store.db");
        if !db.is_empty() && addr.is_empty() {
            self.refuse("store.db", "goes with store.addr; a URL ends in the database's name");
        }
        if !addr.is_empty() && !is_address(addr) {
            self.refuse("store.addr", "must be host:port");
        }
    }

    fn worker(&mut self) {
        let lease = self.config.duration("worker.heartbeat_ttl");
        let is_lease = lease >= Duration::from_secs(5);
        if !is_lease {
            self.refuse("worker.heartbeat_ttl", "must be at least 5s");
        }
        if self.config.duration("worker.brpoplpush_timeout") < Duration::from_millis(10) {
            self.refuse("worker.brpoplpush_timeout", "must be at least 10ms");
        }
        let knows_lease = is_lease && self.unknown.has_none_of(&["worker.heartbeat_ttl"]);
        if knows_lease && self.config.duration("worker.brpoplpush_timeout") > lease / 2 {
            let half = duration::write(lease / 2);
            let rule = format!("must be at most half of worker.heartbeat_ttl, which is {half}");
            self.refuse("worker.brpoplpush_timeout", rule);
        }
        let backoff = (
            self.config.duration("worker.backoff.base"),
            self.config.duration("worker.backoff.max"),
        );
        if backoff.0 > backoff.1 && self.unknown.has_none_of(&["worker.backoff"]) {
            let most = duration::write(backoff.1);
            self.refuse(
                "worker.backoff.base",
                format!("must be at most worker.backoff.max, which is {most}"),
            );
        }
        for path in ["worker.processing_list_pattern", "worker.heartbeat_key_pattern"] {
            let pattern = self.config.text(path);
            if pattern.matches("%s").count() != 1 || pattern.matches('%').count() != 1 {
                self.refuse(path, "must hold %s exactly once, and no other %");
            }
        }
        for (code, class) in self.config.map("worker.exit_codes") {
            if !code.parse::<u8>().is_ok_and(|code| code > 0) {
                self.refuse("worker.exit_codes", format!("{code} is no exit code from 1 to 255"));
            }
            if !FailureClass::ALL.iter().any(|known| known.id() == class) {
                let known: Vec<&str> = FailureClass::ALL.iter().map(|class| class.id()).collect();
                let rule = format!("{class} is no class of failure: {}", known.join(", "));
                self.refuse("worker.exit_codes", rule);
            }
        }
        let listings = ["worker.completed_list", "worker.dead_letter_list"];
        for path in listings.into_iter().filter(|path| self.config.text(path).is_empty()) {
            self.refuse(path, "must not be empty");
        }
        let is_same = self.config.text(listings[0]) == self.config.text(listings[1]);
        if is_same && self.unknown.has_none_of(&listings) {
            self.refuse("worker.dead_letter_list", "must differ from worker.completed_list");
        }
    }

    fn queues(&mut self) {
        let priorities = self.config.list("worker.priorities");
        let queues = self.config.map("worker.queues");
        if priorities.is_empty() {
            self.refuse("worker.priorities", "must not be empty");
        }
        for (at, name) in priorities.iter().enumerate() {
            let has_queue = queues.iter().any(|(have, _)| have == name);
            if !has_queue && self.unknown.has_none_of(&["worker.queues"]) {
                self.refuse("worker.priorities", format!("{name} has no entry in worker.queues"));
            }
            if priorities.iter().take(at).any(|before| before == name) {
                self.refuse("worker.priorities", format!("names {name} twice"));
            }
        }
        for (at, (name, queue)) in queues.iter().enumerate() {
            if queue.len() > 255 {
                self.refuse(
                    "worker.queues",
                    format!("the queue of {name} is longer than 255 bytes"),
                );
            } else if let Err(error) = QueueName::new(queue) {
                self.refuse("worker.queues", format!("the queue of {name}: {}", error.message()));
            }
            if let Some((other, _)) = queues.iter().take(at).find(|(_, have)| have == queue) {
                self.refuse("worker.queues", format!("{name} and {other} share the queue {queue}"));
            }
        }
    }

    fn producer(&mut self) {
        let priorities = self.config.list("worker.priorities");
        let default = self.config.text("producer.default_priority");
        let knows_priorities = self.unknown.has_none_of(&["worker.priorities"]);
        let is_one = priorities.is_empty() || priorities.iter().any(|name| name == default);
        if knows_priorities && !is_one {
            self.refuse("producer.default_priority", "must be one of worker.priorities");
        }
        if self.config.text("producer.scan_dir").is_empty() {
            self.refuse("producer.scan_dir", "must name a folder");
        }
        if self.config.list("producer.include_globs").is_empty() {
            self.refuse("producer.include_globs", "must not be empty; **/* takes every file");
        }
        for ext in self.config.list("producer.high_priority_exts") {
            if ext.len() < 2 || !ext.starts_with('.') || ext.contains(['/', '*']) {
                let rule = format!("{ext} must begin with a point and hold neither / nor *");
                self.refuse("producer.high_priority_exts", rule);
            }
        }
        let bucket = self.config.text("producer.rate_limit_key");
        if bucket.is_empty() {
            self.refuse("producer.rate_limit_key", "must not be empty");
        } else if let Err(error) = BucketName::new(bucket) {
            self.refuse("producer.rate_limit_key", error.message().to_owned());
        }
    }

    fn breaker(&mut self) {
        let threshold = self.config.fraction("circuit_breaker.failure_threshold");
        if !(threshold > 0.0 && threshold <= 1.0) {
            self.refuse("circuit_breaker.failure_threshold", "must be above 0 and at most 1");
        }
    }

    fn observability(&mut self) {
        let levels = ["trace", "debug", "info", "warn", "error"];
        if !levels.contains(&self.config.text("observability.log_level")) {
            self.refuse("observability.log_level", format!("must be one of {}", levels.join(", ")));
        }
        if self.config.text("observability.metrics_host").parse::<std::net::IpAddr>().is_err() {
            self.refuse("observability.metrics_host", "must be an IP address, such as 127.0.0.1");
        }
        if self.config.duration("observability.queue_sample_interval") < Duration::from_millis(100)
        {
            self.refuse("observability.queue_sample_interval", "must be at least 100ms");
        }
        let endpoint = self.config.text("observability.tracing.endpoint");
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| endpoint.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if !endpoint.is_empty() && !is_url {
            self.refuse("observability.tracing.endpoint", "must be an http or https URL");
        }
        let lacks_endpoint =
            endpoint.is_empty() && self.unknown.has_none_of(&["observability.tracing.endpoint"]);
        if self.config.flag("observability.tracing.enabled") && lacks_endpoint {
            self.refuse("observability.tracing.enabled", "needs observability.tracing.endpoint");
        }
    }
}

/// Writes a value as it would stand in an environment variable; a secret as stars.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Text(text) => mask_url(text),
        Value::Int(number) => number.to_string(),
        Value::Fraction(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Duration(length) => duration::write(*length),
        Value::List(items) => items.join(","),
        Value::Map(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, text)| format!("{name}={text}")).collect();
            pairs.join(",")
        }
        Value::Secret(secret) => secret.as_ref().map_or_else(String::new, |_| "***".to_owned()),
    }
}

/// Says whether a URL has a password in its authority or its parameters.
fn holds_password(url: &str) -> bool {
    mask_url(url) != url
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('@') && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// Says whether a key's value must not be shown.
pub(super) fn is_secret(key: &Key) -> bool {
    key.kind == super::Kind::Secret
}
