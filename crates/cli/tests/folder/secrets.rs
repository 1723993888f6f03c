//! What is secret, or a payload, and where it must not be written.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use leasehold::State;
use libtest_mimic::Failed;

use super::collector::Collector;
use super::yard::{Yard, same};

/// No rule knows this form; that it is secret is known from where it stands only.
const SECRET: &str = "Zq77-mark-of-a-token-8f3a91";
/// The same in base64, as a program may well print it.
const ENCODED: &str = "WnE3Ny1tYXJrLW9mLWEtdG9rZW4tOGYzYTkx";
/// A part of a payload, which may stand in the database but nowhere else.
const PAYLOAD: &str = "mark-in-a-payload-5521";

fn has(bytes: &[u8], mark: &str) -> bool {
    bytes.windows(mark.len()).any(|part| part == mark.as_bytes())
}

fn with_secrets(yard: &Yard, arguments: &[&str]) -> Command {
    let mut command = yard.command(arguments);
    command.env("API_TOKEN", SECRET).env("STORE_PASSWORD", SECRET);
    command
}

/// A token in the environment of a command that prints it in every way, a password in the configuration
/// and a name in the payload: none is in the log, the traces, the metrics, an answer of the command, or the database's bytes.
///
/// Proves: SEC-1, SEC-2, DL-2, LOG-1
pub(crate) fn a_secret_is_written_nowhere(yard: &Yard) -> Result<(), Failed> {
    let script = "echo \"out $API_TOKEN\"; echo \"err $API_TOKEN\" >&2; printf %s \"$API_TOKEN\" | base64 >&2; exit $(cat \"$1\")";
    yard.configure(
        &["sh", "-c", script, "sh", "{path}"],
        "worker: command_env: [PATH, API_TOKEN]
         worker: max_retries: 1
         worker: backoff: {base: 10ms, max: 20ms}",
    )?;
    for code in ["0", "65", "75"] {
        yard.put(format!("{PAYLOAD}-{code}"), code)?;
    }
    let collector = Collector::start()?;
    let out = with_secrets(yard, &["--role=all", "--once"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .output()?;
    let mut said = vec![("the log".to_owned(), [out.stdout, out.stderr].concat())];
    same("traces were sent", collector.got().is_empty(), !cfg!(feature = "otel"))?;
    said.push(("the traces".to_owned(), collector.got()));
    said.push(("the metrics".to_owned(), metrics(yard)?));
    same("exit code", out.status.code(), Some(6))?;
    let jobs = yard.jobs()?;
    let ended = jobs.iter().filter(|job| job.state == State::DeadLetter).count();
    same("jobs, dead letters", (jobs.len(), ended), (4, 3))?;
    let kept = jobs.iter().find_map(|job| job.result.clone()).ok_or("no result")?;
    same("the rest of the output is kept", kept.as_str().contains("out [redacted:"), true)?;
    let id = jobs.iter().find(|job| job.state == State::DeadLetter).ok_or("none")?.id.to_string();
    for arguments in [
        &["status"][..],
        &["jobs", "list"],
        &["jobs", "show", &id],
        &["jobs", "why", &id],
        &["queues", "list"],
        &["outbox", "list"],
        &["dead", "list"],
        &["dead", "show", &id],
        &["audit"],
        &["verify"],
        &["config", "show"],
    ] {
        for form in [&[][..], &["--json"]] {
            let out = with_secrets(yard, &[arguments, form].concat()).output()?;
            same(&format!("{arguments:?}"), out.status.code(), Some(0))?;
            said.push((format!("{arguments:?}"), [out.stdout, out.stderr].concat()));
        }
    }
    for (what, bytes) in &said {
        let found = [SECRET, ENCODED, PAYLOAD].into_iter().find(|mark| has(bytes, mark));
        if let Some(found) = found {
            return Err(format!("{found} in {what}: {}", String::from_utf8_lossy(bytes)).into());
        }
    }
    let stored = yard.stored_bytes()?;
    same("the payload is there", has(&stored, PAYLOAD), true)?;
    same("the secret is there", has(&stored, SECRET) || has(&stored, ENCODED), false)
}

/// What a worker serves that does these jobs' upkeep and one job more, which fails.
fn metrics(yard: &Yard) -> Result<Vec<u8>, Failed> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let log = std::fs::File::create(yard.beside("log"))?;
    yard.put(format!("{PAYLOAD}-last"), "65")?;
    let mut worker = with_secrets(yard, &["--role=all"])
        .env("OBSERVABILITY_METRICS_PORT", &port)
        .stderr(log)
        .spawn()?;
    let mut got = Vec::new();
    let served = yard.until("metrics of a failed job", |_| {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port.parse()?)) else {
            return Ok(false);
        };
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")?;
        got.clear();
        stream.read_to_end(&mut got)?;
        let text = String::from_utf8_lossy(&got).into_owned();
        let mut counts = text.lines().filter(|line| line.starts_with("jobs_dead_letter_total{"));
        Ok(counts.any(|line| !line.ends_with(" 0")))
    });
    worker.kill()?;
    worker.wait()?;
    served?;
    got.extend(std::fs::read(yard.beside("log"))?);
    Ok(got)
}

/// The bound on what is kept falls into the middle of a token.
///
/// Proves: SEC-2
pub(crate) fn half_a_secret_is_not_kept(yard: &Yard) -> Result<(), Failed> {
    yard.configure(
        &["sh", "-c", "printf '%s' \"0123456789$API_TOKEN\""],
        "worker: command_env: [PATH, API_TOKEN]
         worker: command_output_max: 24",
    )?;
    yard.put("file", "x")?;
    let out = with_secrets(yard, &["--role=all", "--once"]).output()?;
    same("exit code", out.status.code(), Some(0))?;
    let job = yard.jobs()?.pop().ok_or("no job")?;
    let kept = job.result.ok_or("no result")?;
    same("kept", kept.as_str().contains("0123456789"), true)?;
    same("half a token", kept.as_str().contains("Zq77"), false)
}
