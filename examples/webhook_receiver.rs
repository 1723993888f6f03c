//! A requester's side of the transcode service: it verifies webhooks, takes each event once, and answers
//! signed calls for credentials.
//!
//! ```sh
//! export TRANSCODE_SECRET=an-example-of-32-bytes-or-longer  # shared with the service
//! cargo run --example webhook_receiver -- --credentials credentials.json
//! ```
//!
//! `status_webhook_url` is `http://127.0.0.1:8081/events`, `refresh_url` `http://127.0.0.1:8081/refresh`.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use clap::Parser;
use leasehold::webhook::{Accepted, Key, Receiver, Refused, Scheme, Signed, Verifier};

/// Receives the webhooks of the transcode service.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where it is served
    #[arg(long, default_value = "127.0.0.1:8081")]
    listen: SocketAddr,
    /// Where it keeps what it has taken
    #[arg(long, default_value = "receiver.db")]
    url: String,
    /// A JSON file with the storage credentials that are given on a refresh
    #[arg(long)]
    credentials: Option<PathBuf>,
}

#[derive(Clone)]
struct Desk {
    receiver: Receiver,
    credentials: Option<PathBuf>,
}

impl FromRef<Desk> for Receiver {
    fn from_ref(desk: &Desk) -> Self {
        desk.receiver.clone()
    }
}

/// Takes an event once, however often it is sent.
async fn told(signed: Signed) -> Result<StatusCode, Refused> {
    let event = String::from_utf8_lossy(signed.body()).into_owned();
    match signed.accept([]).await? {
        Accepted::New(_) => println!("{event}"),
        Accepted::Again => println!("again, and known: {}", signed.verified().event_id()),
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Gives the credentials in the file, to who can sign.
async fn refresh(State(desk): State<Desk>, signed: Signed) -> Response {
    println!("asked for credentials: {}", String::from_utf8_lossy(signed.body()));
    let Some(file) = desk.credentials else { return StatusCode::ACCEPTED.into_response() };
    match tokio::fs::read_to_string(file).await {
        Ok(credentials) => {
            let body = format!("{{\"credentials\":{credentials}}}");
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let secret = std::env::var("TRANSCODE_SECRET")?;
    let verifier = Verifier::new(Scheme::euterpe(), Key::new(secret.into_bytes())?);
    let receiver = Receiver::new(verifier, leasehold::connect(&arguments.url).await?);
    let router = Router::new()
        .route("/events", post(told))
        .route("/refresh", post(refresh))
        .with_state(Desk { receiver, credentials: arguments.credentials });
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
