//! A service that transcodes WAV to FLAC: requesters ask over HTTP, workers read and write storage with
//! credentials that expire, and every step is told by a signed webhook.
//!
//! ```sh
//! export TRANSCODE_SECRET=an-example-of-32-bytes-or-longer  # shared with the receiver
//! export TRANSCODE_KEYS=2026-11:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=  # id and 32 bytes, base64
//! cargo run --example webhook_receiver &
//! cargo run --example transcode_service -- --local media --allow-private --issue-key studio-7
//! cargo run --example transcode_service -- --url postgres://localhost/media --workers 2 --local media \
//!   --allow-private --issue-key studio-7
//! ```
//!
//! It prints an API key; `docs/transcode.md` shows the requests.
#![allow(clippy::print_stdout, reason = "a program for people")]

mod crew;
mod flac;
mod order;
mod service;
mod studio;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use clap::Parser;
use leasehold::CancellationToken;
use leasehold::http::{ApiKeys, Server};
use leasehold::{Actor, Scope};
use tokio::process::{Child, Command};

use service::{Failed, Settings, api, work};

/// Transcodes WAV to FLAC.
#[derive(Debug, Parser)]
struct Arguments {
    /// The store: a file, or `postgres://…`
    #[arg(long, default_value = "transcode.db")]
    url: String,
    /// Where the API is served
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// How many worker processes; none: in this one
    #[arg(long, default_value_t = 0)]
    workers: u32,
    /// The folder that jobs may read and write
    #[arg(long)]
    local: Option<PathBuf>,
    /// Where temporary files lie
    #[arg(long, default_value = "transcode.tmp")]
    scratch: PathBuf,
    /// Allows storage, refresh URLs and webhooks on this machine and without TLS
    #[arg(long)]
    allow_private: bool,
    /// Makes an API key for a requester, and shows it once
    #[arg(long)]
    issue_key: Option<String>,
    /// Works, and serves nothing
    #[arg(long, hide = true)]
    only_work: bool,
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            local: self.local.clone(),
            scratch: self.scratch.clone(),
            allow_private: self.allow_private,
            secret: std::env::var("TRANSCODE_SECRET").ok(),
            keys: std::env::var("TRANSCODE_KEYS").ok(),
        }
    }

    /// A worker process of the same settings.
    fn child(&self) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--only-work", "--url", &self.url]).arg("--scratch").arg(&self.scratch);
        if let Some(local) = &self.local {
            command.arg("--local").arg(local);
        }
        if self.allow_private {
            command.arg("--allow-private");
        }
        // Closed once this process ends, however it ends.
        command.stdin(Stdio::piped()).kill_on_drop(true).spawn()
    }
}

/// Waits until somebody ends the service: Ctrl-C, or SIGTERM.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        let kind = tokio::signal::unix::SignalKind::terminate();
        if let Ok(mut terminate) = tokio::signal::unix::signal(kind) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _either_way = tokio::signal::ctrl_c().await;
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments = Arguments::parse();
    let url = match arguments.url.starts_with("postgres") && !arguments.url.contains("migrate=") {
        true => {
            let sign = if arguments.url.contains('?') { '&' } else { '?' };
            format!("{}{sign}migrate=auto", arguments.url)
        }
        false => arguments.url.clone(),
    };
    let store = leasehold::connect(&url).await?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let is_child = arguments.only_work;
    tokio::spawn(async move {
        tokio::select! {
            () = told_to_stop() => {}
            () = crew::orphaned(), if is_child => {}
        }
        stop.cancel();
    });
    if arguments.only_work {
        work(store, &arguments.settings(), shutdown).await?;
        // The thread that reads the input would hold the process until it is closed.
        std::process::exit(0);
    }
    if let Some(requester) = &arguments.issue_key {
        let scope = Scope::new(requester)?;
        let key = ApiKeys::of(store.clone()).issue(&scope, None, Actor::new("start")?).await?;
        println!("API key of {requester}: {}", key.expose());
    }
    let router = api(store.clone(), &arguments.settings())?;
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    println!("listening on {}", listener.local_addr()?);
    let serving = Server::new().serve(listener, router, shutdown.clone());
    let working = async {
        match arguments.workers {
            0 => work(store, &arguments.settings(), shutdown.clone()).await,
            processes => {
                crew::keep(processes, || arguments.child(), &shutdown).await;
                Ok(())
            }
        }
    };
    let ((), worked) = tokio::join!(serving, working);
    worked
}
