//! A collector of traces in the test's own process. Keeps what is posted to it, byte for byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Failed;

use super::yard::{Yard, same};

/// Takes requests until the test ends.
pub(crate) struct Collector {
    address: std::net::SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub(crate) fn start() -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, got) = (listener.local_addr()?, Arc::<Mutex<Vec<u8>>>::default());
        let into = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let into = into.clone();
                std::thread::spawn(move || take(stream, &into));
            }
        });
        Ok(Self { address, got })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Heads and bodies of all requests so far.
    pub(crate) fn got(&self) -> Vec<u8> {
        self.got.lock().map(|got| got.clone()).unwrap_or_default()
    }
}

/// Answers each request of a connection with 200.
fn take(mut stream: TcpStream, into: &Mutex<Vec<u8>>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(part.get(..read)?);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(bytes.get(..end)?).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length?.trim().parse().ok()?;
        if bytes.len() >= end + 4 + length {
            into.lock().ok()?.append(&mut bytes);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        }
    }
}

pub(crate) fn count(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).filter(|part| *part == text).count()
}

/// Each file has a trace of two spans, of which its payload names the first. Without the feature the log says
/// that nothing is sent.
///
/// Proves: TRC-1, CFG-3
pub(crate) fn a_collector_gets_the_trace_of_each_file(yard: &Yard) -> Result<(), Failed> {
    yard.configure_to_record("")?;
    for name in ["a", "b", "c"] {
        yard.put(name, "x")?;
    }
    let collector = Collector::start()?;
    let out = yard
        .command(&["--role=all", "--once"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_SERVICE_NAME", "my-folder")
        .output()?;
    same("exit code", out.status.code(), Some(0))?;
    let (log, got) = (String::from_utf8_lossy(&out.stderr), collector.got());
    if !cfg!(feature = "otel") {
        same("said", log.contains("lacks the feature otel"), true)?;
        return same("sent", got.len(), 0);
    }
    same("path", count(&got, b"POST /v1/traces") > 0, true)?;
    same("service", count(&got, b"my-folder") > 0, true)?;
    let jobs = yard.jobs()?;
    same("jobs", jobs.len(), 3)?;
    for job in jobs {
        let id = job.id.to_string();
        same("spans that name the job", count(&got, id.as_bytes()), 2)?;
        let payload: serde_json::Value = serde_json::from_str(job.payload.as_str())?;
        let [trace, span] = ["trace_id", "span_id"]
            .map(|name| payload.get(name).and_then(|it| it.as_str()).unwrap_or(""));
        let bytes = |hex: &str| -> Vec<u8> {
            let digits = hex.as_bytes().chunks(2).filter_map(|two| std::str::from_utf8(two).ok());
            digits.filter_map(|two| u8::from_str_radix(two, 16).ok()).collect()
        };
        same("spans of its trace", count(&got, &bytes(trace)), 2)?;
        same("the first, and as the second's parent", count(&got, &bytes(span)), 2)?;
    }
    Ok(())
}
