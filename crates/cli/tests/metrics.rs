//! What a process serves under `/metrics`, and that the dashboard and the alert rules name nothing else.
//! `deploy/metrics.txt` holds every metric with all of its series; CI has `promtool` read that file, and
//! `LEASEHOLD_UPDATE_METRICS=1` writes it anew.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is not there")]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leasehold::circuit::CircuitBreakers;
use leasehold::metrics::Metrics;
use leasehold::observe::{Leased, Observer};
use leasehold::{Epoch, Error, LostReason, QueueName, Reclaimed, Stats, Timestamp, VerdictKind};
use leasehold_cli::role::metrics::{CONNECTIONS_MAX, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than a request takes to come, on a slow machine too.
const PATIENCE: Duration = Duration::from_secs(5);
/// Whoever waits longer waits for ever.
const FOR_EVER: Duration = Duration::from_secs(60);

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

fn full() -> Metrics {
    let queues = ["high", "low"].map(|name| QueueName::new(name).unwrap());
    let metrics = Metrics::new(&queues);
    metrics.sample(&Stats::new(Timestamp::MIN, Epoch::default(), "none"));
    let lost = |reason| Error::lost("settle", "a job", reason);
    metrics.write_refused("settle", &lost(LostReason::TakenOver));
    metrics.delivery_ended(VerdictKind::Delivered);
    metrics.lease_lost(Leased::Job);
    metrics.reclaimed(&Reclaimed::default());
    metrics.breakers(Arc::new(CircuitBreakers::new()))
}

async fn get(path: &str, metrics: Metrics) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, Arc::new(metrics), PATIENCE));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

/// Series in order; their values say nothing here.
fn sorted(body: &str) -> String {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in body.lines() {
        match parts.last_mut() {
            Some(part) if !line.starts_with("# HELP") => part.push(line),
            _ => parts.push(vec![line]),
        }
    }
    let mut text = String::new();
    for part in &mut parts {
        let is_histogram = part.iter().any(|line| line.ends_with(" histogram"));
        if !is_histogram {
            part.get_mut(2..).unwrap_or_default().sort_unstable();
        }
    }
    for part in parts {
        text.push_str(&part.join("\n"));
        text.push('\n');
    }
    text
}

/// Proves: MET-1
#[tokio::test]
async fn metrics_are_served_under_their_path_only() {
    let answer = get("/metrics", full()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    let path = deploy("metrics.txt");
    if std::env::var_os("LEASEHOLD_UPDATE_METRICS").is_some() {
        std::fs::write(&path, sorted(body)).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(names(&sorted(body)), names(&kept), "deploy/metrics.txt is out of date");
    let series = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
    assert_eq!(series(body), series(&kept), "deploy/metrics.txt is out of date");
    assert!(get("/", full()).await.starts_with("HTTP/1.1 404"));
}

/// Each connection is one of the files that the jobs need too.
///
/// Proves: MET-1
#[tokio::test]
async fn silent_connections_are_bounded_and_ended() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Arc::new(full());
    let server = tokio::spawn(serve(listener, metrics, PATIENCE));
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").await.unwrap();
        silent.push(stream);
    }
    // They have every place: one of them must be gone before the next is answered.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    tokio::time::timeout(FOR_EVER, stream.read_exact(&mut start)).await.unwrap().unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    let mut ended = 0;
    for mut stream in silent.into_iter().map(|stream| stream.into_std().unwrap()) {
        let read = std::io::Read::read(&mut stream, &mut [0; 1024]);
        ended += usize::from(!read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
    assert!(ended > 0, "more than {CONNECTIONS_MAX} connections were served at once");
    server.abort();
}

/// Proves: MET-1
#[test]
fn every_name_of_the_source_is_there() {
    let kept = std::fs::read_to_string(deploy("metrics.txt")).unwrap();
    for (name, sort) in [
        ("jobs_produced_total", "counter"),
        ("jobs_consumed_total", "counter"),
        ("jobs_completed_total", "counter"),
        ("jobs_failed_total", "counter"),
        ("jobs_retried_total", "counter"),
        ("jobs_dead_letter_total", "counter"),
        ("job_processing_duration_seconds", "histogram"),
        ("queue_length", "gauge"),
        ("reaper_jobs_moved_total", "counter"),
        ("circuit_breaker_state", "gauge"),
    ] {
        assert!(kept.contains(&format!("# TYPE {name} {sort}\n")), "{name} is no {sort}");
    }
}

/// Whoever is woken finds out what it means.
///
/// Proves: MET-1
#[test]
fn every_alert_has_a_page_in_the_operators_guide() {
    let guide = std::fs::read_to_string(deploy("../docs/operating.md")).unwrap();
    let rules = std::fs::read_to_string(deploy("alerts.yaml")).unwrap();
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 5);
    for alert in alerts {
        assert!(guide.contains(&format!("### {alert}\n")), "{alert} has no page");
    }
}

/// Proves: MET-1
#[test]
fn dashboard_and_alerts_name_metrics_that_exist() {
    let kept = std::fs::read_to_string(deploy("metrics.txt")).unwrap();
    let known: BTreeSet<&str> =
        kept.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let ours = |word: &&str| {
        let starts =
            ["leasehold_", "jobs_", "job_processing", "queue_length", "circuit_", "reaper_"];
        starts.iter().any(|start| word.starts_with(start))
    };
    for file in ["alerts.yaml", "grafana.json"] {
        let text = std::fs::read_to_string(deploy(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(ours);
        let named: BTreeSet<&str> = words
            .map(|word| {
                let ends = ["_bucket", "_sum", "_count"];
                ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word)
            })
            .collect();
        assert!(named.len() > 5, "{file} names too few: {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}");
    }
}
