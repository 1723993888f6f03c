//! Owns whether what `deploy/` says of the command is so: keys, arguments, files, times. Neither image nor unit is made here.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use super::{KEYS, load};
use crate::config::Config;
use crate::role::Arguments;

/// What a stop takes beyond the grace time of the commands: the releases, and a claim without an answer.
const AFTER_GRACE: u64 = 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// What follows a text at the beginning of a line, blanks aside.
fn after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.trim().strip_prefix(start)).map(str::trim).collect()
}

/// Takes the arguments as the command does.
#[track_caller]
fn takes(arguments: &[&str]) {
    let command = Arguments::augment_args(Command::new("leasehold"));
    let all = [&["leasehold"][..], arguments].concat();
    command.try_get_matches_from(all).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
}

fn seconds(text: &str) -> u64 {
    text.strip_suffix('s').unwrap().parse().unwrap()
}

/// The configuration that variables make, without a note about any of them.
#[track_caller]
fn configured(variables: &[(String, String)]) -> Config {
    for (name, _) in variables {
        assert!(KEYS.iter().any(|key| key.variable() == *name), "{name} is no key");
    }
    let loaded = load(None, variables).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    loaded.config
}

/// Proves: CLI-1, CFG-1
#[test]
fn the_image_is_made_of_what_is_there() {
    let text = read("Dockerfile");
    let workspace = std::fs::read_to_string(folder().join("../Cargo.toml")).unwrap();
    let version = after(&workspace, "rust-version = \"")[0].split('"').next().unwrap();
    assert_eq!(after(&text, "FROM rust:"), [format!("{version}-bookworm AS build")]);
    let package = env!("CARGO_PKG_NAME");
    let build = format!("cargo build --release --locked -p {package} --bin leasehold");
    assert_eq!(after(&text, "RUN ")[0], build);
    let placed = "/usr/local/bin/leasehold";
    assert_eq!(
        after(&text, "COPY --from=build ")[0],
        format!("/src/target/release/leasehold {placed}")
    );
    assert_eq!(after(&text, "ENTRYPOINT "), [format!("[\"{placed}\"]")]);
    let command: Vec<String> = serde_json::from_str(after(&text, "CMD ")[0]).unwrap();
    takes(&command.iter().map(String::as_str).collect::<Vec<_>>());
    let variables: Vec<(String, String)> = after(&text, "ENV ")[0]
        .split(' ')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let config = configured(&variables);
    let port = config.int("observability.metrics_port").to_string();
    assert_eq!(after(&text, "EXPOSE "), [port]);
    let home = after(&text, "WORKDIR ")[1];
    assert!(config.text("store.url").starts_with(&format!("sqlite:{home}/")));
    // What the build does not need is not sent to it.
    let ignored = std::fs::read_to_string(folder().join("../.dockerignore")).unwrap();
    assert!(["target", ".git"].iter().all(|name| ignored.lines().any(|line| line == *name)));
}

/// Proves: CLI-1, CFG-1
#[test]
fn the_services_are_made_of_what_is_there() {
    let text = read("compose.yaml");
    let ours = text.split("\nservices:").next().unwrap();
    let block = ours.split("  environment:\n").nth(1).unwrap();
    let lines = block.lines().take_while(|line| line.starts_with("    "));
    let variables: Vec<(String, String)> = lines
        .map(|line| line.trim().split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect();
    assert!(variables.len() > 5, "{variables:?}");
    let config = configured(&variables);
    assert_eq!(crate::place::check(&config).err(), None);
    let stop = seconds(after(ours, "stop_grace_period: ")[0]);
    assert!(stop > config.duration("worker.grace").as_secs() + AFTER_GRACE);
    let (user, database) = (after(&text, "POSTGRES_USER: ")[0], after(&text, "POSTGRES_DB: ")[0]);
    let url = config.text("store.url");
    assert!(url.starts_with(&format!("postgres://{user}@db:5432/{database}?")), "{url}");
    let inbox = config.text("producer.scan_dir");
    assert!(ours.contains(&format!("volumes: [./inbox:{inbox}]")), "{inbox}");
    for role in after(&text, "command: [") {
        takes(&[role.trim_end_matches(']')]);
    }
    for mounted in after(&text, "- ./") {
        let name = mounted.split(':').next().unwrap();
        assert!(folder().join(name).is_file(), "{name} is not there");
    }
    assert!(ours.contains("build: {context: .., dockerfile: deploy/Dockerfile}"));
    let scraped = read("prometheus.yaml");
    for service in ["producer", "worker"] {
        assert!(text.contains(&format!("\n  {service}:\n")), "{service}");
        assert!(after(&scraped, "- {names: [")[0].contains(service), "{service}");
    }
}

/// Proves: CLI-1
#[test]
fn the_unit_starts_what_is_there() {
    let text = read("leasehold.service");
    let config = load(Some(&folder().join("leasehold.yaml")), &[]).unwrap().config;
    let words: Vec<&str> = after(&text, "ExecStart=")[0].split(' ').collect();
    takes(&words[1..]);
    let stop = seconds(after(&text, "TimeoutStopSec=")[0]);
    assert!(stop >= config.duration("worker.grace").as_secs() + AFTER_GRACE);
    let path = words.last().unwrap();
    let checked = format!("{} config check --config {path}", words[0]);
    assert_eq!(after(&text, "ExecStartPre="), [checked]);
    let inbox = config.text("producer.scan_dir");
    assert_eq!(after(&text, "ReadWritePaths="), [inbox]);
    let home = after(&text, "WorkingDirectory=")[0];
    assert!(config.text("store.url").starts_with(&format!("sqlite:{home}/")));
}
