//! Owns the exact message of each rule. Refuses to know how a message is made.

use super::refused;

/// A file of one line, and the message it must give.
const RULES: &[(&str, &str)] = &[
    ("worker: {count: 0}", "worker.count: \"0\": must be at least 1"),
    ("worker: {priorities: []}", "worker.priorities: \"\": must not be empty"),
    (
        "worker: {priorities: [high, low, mid]}",
        "worker.priorities: \"high,low,mid\": mid has no entry in worker.queues",
    ),
    ("worker: {heartbeat_ttl: 4999ms}", "worker.heartbeat_ttl: \"4s999ms\": must be at least 5s"),
    (
        "worker: {heartbeat_ttl: 10s, brpoplpush_timeout: 5001ms}",
        "worker.brpoplpush_timeout: \"5s1ms\": must be at most half of worker.heartbeat_ttl, which is 5s",
    ),
    (
        "worker: {brpoplpush_timeout: 9ms}",
        "worker.brpoplpush_timeout: \"9ms\": must be at least 10ms",
    ),
    (
        "producer: {rate_limit_per_sec: -1}",
        "producer.rate_limit_per_sec: \"-1\": must be at least 0",
    ),
    (
        "worker: {backoff: {base: 2m, max: 90s}}",
        "worker.backoff.base: \"2m\": must be at most worker.backoff.max, which is 90s",
    ),
    (
        "worker: {processing_list_pattern: 'a:%s:%s'}",
        "worker.processing_list_pattern: \"a:%s:%s\": must hold %s exactly once, and no other %",
    ),
    (
        "worker: {heartbeat_key_pattern: beat}",
        "worker.heartbeat_key_pattern: \"beat\": must hold %s exactly once, and no other %",
    ),
    (
        "worker: {queues: {high: q, low: q}}",
        "worker.queues: \"high=q,low=q\": low and high share the queue q",
    ),
    (
        "worker: {dead_letter_list: completed}",
        "worker.dead_letter_list: \"completed\": must differ from worker.completed_list",
    ),
    (
        "producer: {default_priority: mid}",
        "producer.default_priority: \"mid\": must be one of worker.priorities",
    ),
    (
        "producer: {high_priority_exts: [pdf]}",
        "producer.high_priority_exts: \"pdf\": pdf must begin with a point and hold neither / nor *",
    ),
    ("producer: {scan_dir: ''}", "producer.scan_dir: \"\": must name a folder"),
    (
        "circuit_breaker: {failure_threshold: 1.5}",
        "circuit_breaker.failure_threshold: \"1.5\": must be above 0 and at most 1",
    ),
    ("circuit_breaker: {min_samples: 0}", "circuit_breaker.min_samples: \"0\": must be at least 1"),
    (
        "observability: {metrics_port: 65536}",
        "observability.metrics_port: \"65536\": must be at most 65535",
    ),
    (
        "observability: {metrics_host: localhost}",
        "observability.metrics_host: \"localhost\": must be an IP address, such as 127.0.0.1",
    ),
    (
        "observability: {queue_sample_interval: 1ms}",
        "observability.queue_sample_interval: \"1ms\": must be at least 100ms",
    ),
    (
        "observability: {log_level: loud}",
        "observability.log_level: \"loud\": must be one of trace, debug, info, warn, error",
    ),
    (
        "observability: {tracing: {enabled: true}}",
        "observability.tracing.enabled: \"true\": needs observability.tracing.endpoint",
    ),
    (
        "observability: {tracing: {endpoint: 'tcp://x'}}",
        "observability.tracing.endpoint: \"tcp://x\": must be an http or https URL",
    ),
    ("store: {addr: nowhere}", "store.addr: \"nowhere\": must be host:port"),
    (
        "store: {db: jobs}",
        "store.db: \"jobs\": goes with store.addr; a URL ends in the database's name",
    ),
    (
        "store: {url: 'postgres://u@h/d', addr: 'h:1'}",
        "store.addr: \"h:1\": store.url names the place already: give one of the two",
    ),
];

/// Proves: CFG-1, CFG-3
#[test]
fn every_rule_names_key_value_and_rule() {
    for (text, wanted) in RULES {
        let got = refused("rules", text);
        let at = got.find(": ").map_or("", |at| &got[at + 2..]);
        assert!(at.starts_with(wanted), "{text}\n  gave   {got}\n  wanted {wanted}");
        assert!(got.starts_with("rules.yaml:1:"), "{got}");
    }
}
