//! Owns the proof that a store speaks TLS and SCRAM to a server that takes nothing else, and to none
//! whose certificate it cannot check.
//!
//! `scripts/postgres-throwaway run --tls` starts such a server. Elsewhere its trials are shown as
//! ignored, and are a failure when `LEASEHOLD_REQUIRE_TLS` is set.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

use std::time::Duration;

use leasehold_core::{
    ClaimRequest, Error, ErrorKind, JobKind, Json, NewJob, QueueName, Store, StoreExt, WorkerId,
};
use leasehold_postgres::open;
use leasehold_postgres::tokio_postgres::{NoTls, connect};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A server behind TLS, and the folder of its certificates and its unix socket.
#[derive(Clone)]
struct Server {
    url: String,
    folder: String,
}

impl Server {
    fn here() -> Option<Self> {
        let folder = std::env::var("LEASEHOLD_TEST_TLS").ok()?;
        let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()?;
        Some(Self { url, folder })
    }

    /// The URL with one part changed.
    fn with(&self, part: &str, other: &str) -> String {
        assert!(self.url.contains(part), "{part} is not in the URL");
        self.url.replacen(part, other, 1)
    }
}

fn main() {
    let server = Server::here();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_TLS").is_some();
    let trial = |name, story: fn(Server)| {
        let server = server.clone();
        let absent = server.is_none() && !required;
        let trial = Trial::test(name, move || {
            story(server.ok_or("no server: see scripts/postgres-throwaway run --tls")?);
            Ok::<(), Failed>(())
        });
        trial.with_ignored_flag(absent)
    };
    let trials = vec![
        trial("jobs_go_through_tls_and_scram", |server| run(jobs_go_through_tls_and_scram(server))),
        trial("what_cannot_be_trusted_is_refused", |server| {
            run(what_cannot_be_trusted_is_refused(server));
        }),
        Trial::test("no_word_is_said_in_the_clear", || {
            run(no_word_is_said_in_the_clear());
            Ok(())
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run(story: impl Future<Output = ()>) {
    let bounded = async { tokio::time::timeout(Duration::from_secs(60), story).await };
    Runtime::new().expect("a runtime").block_on(bounded).expect("an end");
}

/// Proves: GLO-4
async fn jobs_go_through_tls_and_scram(server: Server) {
    let url = format!("{}&schema=tls&migrate=auto&channel_binding=require", server.url);
    let store = open(&url).await.expect("a store");
    let job = NewJob::new(JobKind::new("k").expect("a kind"), Json::null());
    assert!(store.enqueue_one(job).await.expect("enqueued").is_new());
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = store.claim(request).await.expect("claimed").pop().expect("a job");
    store.succeed(claim.fence).await.expect("settled");
    let heard = async {
        while !store.hears_wake_ups() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("wake-ups are heard");
    let beside = format!("host={} port={} user=postgres", server.folder, port(&server.url));
    let (client, connection) = connect(&beside, NoTls).await.expect("the socket");
    tokio::spawn(connection);
    let text = "select count(*), count(*) filter (where ssl and s.version >= 'TLSv1.2') \
                from pg_stat_activity a join pg_stat_ssl s using (pid) \
                where application_name = 'leasehold'";
    let row = client.query_one(text, &[]).await.expect("counts");
    let (all, encrypted): (i64, i64) = (row.get(0), row.get(1));
    assert!(all >= 2, "the listener and the pool");
    assert_eq!(encrypted, all);
    let text =
        "select rolpassword like 'SCRAM-SHA-256$%' from pg_authid where rolname = 'postgres'";
    assert!(client.query_one(text, &[]).await.expect("a role").get::<_, bool>(0));
}

fn port(url: &str) -> &str {
    url.split_once("localhost:").and_then(|(_, rest)| rest.split_once('/')).expect("a port").0
}

/// The whole of an error: what it says, and what its source does.
fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

/// Proves: GLO-4
async fn what_cannot_be_trusted_is_refused(server: Server) {
    let roots = format!("&sslrootcert={}/ca.pem", server.folder);
    let table = [
        ("another authority", server.with("/ca.pem", "/other-ca.pem"), "certificate"),
        ("the machine's authorities", server.with(&roots, ""), "certificate"),
        ("another host's name", server.with("localhost", "127.0.0.1"), "certificate"),
        (
            "any mode checks",
            server.with("/ca.pem", "/other-ca.pem").replace("verify-full", "require"),
            "certificate",
        ),
        (
            "if it can",
            server.with("/ca.pem", "/other-ca.pem").replace("verify-full", "prefer"),
            "certificate",
        ),
        ("in the clear", server.with("verify-full", "disable"), "no encryption"),
        ("a wrong password", server.with("a%20p", "a%20q"), "password authentication failed"),
        ("no password", server.with(":a%20p%40ss%3Aw%2Frd%3F@", "@"), "password"),
    ];
    for (what, url, word) in table {
        let error = open(&url).await.expect_err(what);
        let text = whole(&error);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {text}");
        assert!(text.contains(word), "{what}: {text}");
        assert!(!text.contains("p@ss") && !text.contains("p%40ss"), "{what}: {text}");
        let about_login = ["in the clear", "a wrong password", "no password"].contains(&what);
        let said = if about_login { "logged in" } else { "sslrootcert" };
        assert!(
            error.message().contains(said) || what == "the machine's authorities",
            "{what}: {text}"
        );
    }
}

/// A server that speaks no TLS hears no name and no password from who asked for it.
///
/// Proves: GLO-4
async fn no_word_is_said_in_the_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a caller");
        let mut asked = [0; 8];
        stream.read_exact(&mut asked).await.expect("a request for TLS");
        stream.write_all(b"N").await.expect("no");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the end");
        (asked, rest)
    });
    let ca = std::env::temp_dir().join(format!("leasehold-tls-{}.pem", std::process::id()));
    std::fs::write(&ca, CA).expect("a file");
    let url = format!(
        "postgres://me:secret@127.0.0.1:{port}/app?sslmode=require&sslrootcert={}",
        ca.display()
    );
    let error = open(&url).await.expect_err("no TLS");
    std::fs::remove_file(&ca).expect("removed");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("TLS"), "{error}");
    let (asked, rest) = heard.await.expect("heard");
    assert_eq!(asked, [0, 0, 0, 8, 4, 210, 22, 47], "the request for TLS");
    assert!(rest.is_empty(), "and not a word more: {rest:?}");
}

/// An authority that has signed nothing.
const CA: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBeTCCAR+gAwIBAgIULg8Ep/LJLJXAqsy9u1ISLVFqZZswCgYIKoZIzj0EAwIw\n\
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyODExNTEzN1oYDzIxMjYxMTA0MTE1\n\
MTM3WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AAT6v1aue1WQ5JQGTJa3N0lLOWuxv1sMckFmxu7OSIZrW08/v+3wt/9MI5fmlLaH\n\
MhL2UaU6TB2DJ/PY0AQa11Iwo1MwUTAdBgNVHQ4EFgQUB6BnyQ2rHIcYKQkJR9ku\n\
s33N11cwHwYDVR0jBBgwFoAUB6BnyQ2rHIcYKQkJR9kus33N11cwDwYDVR0TAQH/\n\
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAimLCPAXzyvClqRTeORIHclKOqF0U\n\
hhHWV6cprKYAnGICIDY6oBqXaaQj/UZEzWsQFUe1QiVxN7h8F3BT4eNqmeLz\n\
-----END CERTIFICATE-----\n\
";
