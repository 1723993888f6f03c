//! Holds the variables that the sources read against those that the help and the page name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_cli::config::{KEYS, Key};
use leasehold_cli::variables::OTHERS;
use libtest_mimic::Failed;
use regex::Regex;
use serde_json::Value;

use crate::desk::same;

/// The sources that read a variable whose name is not in them: part of the path, whose name it is.
const BY_NAME: &[(&str, &str)] = &[
    ("cli/src/config/mod.rs", "a key's"),
    ("cli/src/role/worker/command.rs", "in worker.command_env"),
    ("cli/src/role/worker/secrets.rs", "in worker.command_env"),
    ("src/vault/source.rs", "behind --env"),
    ("core/src/lab/altered.rs", "only where failpoints are compiled in, as they are not here"),
];

/// What the libraries read for the command.
const BY_LIBRARIES: [&str; 9] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_BSP_*",
];

/// Proves: CLI-1
pub(crate) fn every_variable_is_named() -> Result<(), Failed> {
    let told: BTreeSet<String> = OTHERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut read = read()?;
    read.extend(BY_LIBRARIES.map(str::to_owned));
    assert_eq!(read, told, "what is read, and what is told of");
    for words in ["--help", "man"] {
        let out = Command::new(env!("CARGO_BIN_EXE_leasehold")).arg(words).output()?;
        let page = String::from_utf8(out.stdout)?.replace("\\-", "-").replace("\\fB", "");
        let names =
            |name: &str| Regex::new(&format!(r"(?:^|[^A-Z_]){}(?:[^A-Z_]|$)", regex::escape(name)));
        for name in told.iter().cloned().chain(KEYS.iter().map(Key::variable)) {
            let stands = page.lines().any(|line| names(&name).is_ok_and(|it| it.is_match(line)));
            same(&format!("{words}: {name}"), &Value::from(stands), true)?;
        }
    }
    Ok(())
}

/// The names in the sources that read the environment, and those of the standard that the spans follow.
fn read() -> Result<BTreeSet<String>, Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for part in
        ["crates/cli/src", "crates/core/src", "backends/sqlite/src", "backends/postgres/src", "src"]
    {
        sources(&root.join(part), &mut files)?;
    }
    let reads = Regex::new(r#"\benv::vars?(_os)?\(|\benv = ""#)?;
    let literal = Regex::new(r#"(value_name = )?"([A-Z][A-Z0-9_]+)""#)?;
    let rests = Regex::new(r#"of_traces\("([A-Z]+)"\)"#)?;
    let (mut names, mut by_name) = (BTreeSet::new(), BTreeSet::new());
    for path in &files {
        let text = std::fs::read_to_string(path)?;
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let shown = path.display().to_string();
        if let Some((part, _)) = BY_NAME.iter().find(|(part, _)| shown.ends_with(part)) {
            by_name.extend(reads.is_match(text).then_some(*part));
            continue;
        }
        let literals = literal.captures_iter(text).filter(|it| it.get(1).is_none());
        let literals = literals.filter_map(|it| Some(it.get(2)?.as_str().to_owned()));
        let reads = reads.is_match(text);
        names.extend(literals.filter(|name| reads || name.starts_with("OTEL_")));
        if text.contains("OTEL_EXPORTER_OTLP_TRACES_{rest}") {
            for rest in rests.captures_iter(text).filter_map(|it| it.get(1)) {
                names.insert(format!("OTEL_EXPORTER_OTLP_{}", rest.as_str()));
                names.insert(format!("OTEL_EXPORTER_OTLP_TRACES_{}", rest.as_str()));
            }
        }
    }
    assert_eq!(by_name.len(), BY_NAME.len(), "only these read by a name: {by_name:?}");
    Ok(names)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failed> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, files)?;
        } else if name.ends_with(".rs") && name != "tests.rs" && !path.is_dir() {
            files.push(path);
        }
    }
    Ok(())
}
