//! Requests that nobody should send.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use leasehold::http::Server;
use leasehold::{CancellationToken, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::asking::{api, issue, jobs, posted, send};
use crate::{Told, stories};

stories![
    malformed_requests_get_a_clean_answer,
    a_served_api_survives_hostile_clients,
    too_much_is_answered_before_the_connection_ends,
    slow_heads_end_and_hold_nobody_up,
    what_is_under_way_ends_before_the_server_does,
];

/// Proves: HTTP-1, PAR-4
async fn malformed_requests_get_a_clean_answer(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).body_bytes_max(1_000).router(), issue(&store, "acme").await?);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let bodies: [(&[u8], u16); 9] = [
        (b"", 400),
        (b"{", 400),
        (b"{\"source\":1,\"source\":2}", 400),
        (b"{\"source\":\"\xff\xfe\"}", 400),
        (b"{\"source\":\"\\ud800\"}", 400),
        (b"{\"source\":\"\x00\"}", 400),
        (deep.as_bytes(), 400),
        (b"{\"other\":1}", 422),
        (&[b' '; 1_001], 413),
    ];
    for (body, status) in bodies {
        let request = Request::post("/transcode")
            .header("authorization", format!("Bearer {key}"))
            .header("idempotency-key", "order-7")
            .header("content-type", "application/json; charset=utf-8")
            .body(Body::from(body.to_vec()))?;
        send(&router, request).await.assert_problem(status);
    }
    let good = || posted("/transcode", &key, "order-7", "{\"source\":1}");
    for name in ["content-type", "idempotency-key", "authorization"] {
        let mut request = good();
        request.headers_mut().remove(name);
        let status = match name {
            "content-type" => 415,
            "idempotency-key" => 400,
            _ => 401,
        };
        send(&router, request).await.assert_problem(status);
    }
    let odd_keys: [&[u8]; 4] = [b"", &[b'k'; 256], b"\xff\xfe", b"a\tb"];
    for odd in odd_keys {
        let mut request = good();
        request.headers_mut().insert("idempotency-key", axum::http::HeaderValue::from_bytes(odd)?);
        send(&router, request).await.assert_problem(400);
    }
    let mut doubled = good();
    doubled.headers_mut().append("idempotency-key", "order-8".parse()?);
    send(&router, doubled).await.assert_problem(400);
    let mut packed = good();
    packed.headers_mut().insert("content-encoding", "gzip".parse()?);
    send(&router, packed).await.assert_problem(415);
    let method = Request::delete("/transcode").body(Body::empty())?;
    send(&router, method).await.assert_problem(405);
    assert_eq!(jobs(&store).await?, 0);
    // A trace context that is none is passed over.
    let mut odd = good();
    odd.headers_mut().insert("traceparent", "00-zz-1".parse()?);
    assert_eq!(send(&router, odd).await.status.as_u16(), 202);
    Ok(())
}

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves a router; where, and what stops it, at the latest when dropped.
async fn serve(server: Server, router: Router) -> std::io::Result<(SocketAddr, Stop)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, stop) = (listener.local_addr()?, CancellationToken::new());
    tokio::spawn(server.serve(listener, router, stop.clone()));
    Ok((address, Stop(stop)))
}

struct Stop(CancellationToken);

impl Stop {
    fn cancel(&self) {
        self.0.cancel();
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn head(key: &str, more: &str) -> String {
    format!(
        "POST /transcode HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nidempotency-key: order-7\r\n{more}\r\n"
    )
}

/// The status of whatever comes back, 0 for a connection that is closed without a word. All is sent before
/// anything is read.
async fn raw(address: SocketAddr, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let _closed_early = stream.write_all(bytes).await;
    let mut answer = vec![0; 4_096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
    let length = read.expect("an answer or an end").unwrap_or(0);
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Proves: HTTP-1
async fn a_served_api_survives_hostile_clients(store: Arc<dyn Store>) -> Told {
    let key = issue(&store, "acme").await?;
    let head = |more: &str| head(&key, more);
    // A body that never comes. The store is waited for no longer either, so this is not for the rest.
    let hasty = api(&store).patience(Duration::from_secs(3)).router();
    let (address, _stops) = serve(Server::new(), hasty).await?;
    assert_eq!(raw(address, head("content-length: 100\r\n").as_bytes()).await, 408);
    let (address, _stops) = serve(Server::new(), api(&store).patience(PATIENCE).router()).await?;
    let lies: [(&[u8], u16); 5] = [
        (&head("content-length: 99999999999\r\n").into_bytes(), 413),
        (&head("content-length: -1\r\n").into_bytes(), 400),
        (b"\x00\x01\x02\r\n\r\n", 400),
        ("GET /transcode/status?job_id=\u{fffd} HTTP/1.1\r\nhost: x\r\n\r\n".as_bytes(), 401),
        (b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    ];
    for (bytes, wanted) in lies {
        assert_eq!(raw(address, bytes).await, wanted, "{}", String::from_utf8_lossy(bytes));
    }
    let fine = head("content-length: 12\r\nconnection: close\r\n") + "{\"source\":1}";
    assert_eq!(raw(address, fine.as_bytes()).await, 202, "and it still serves");
    Ok(())
}

/// The status of the answer to who sends all before reading anything, is never cut off, and hears all of the
/// answer up to a clean end.
async fn heard_out(address: SocketAddr, bytes: &[u8]) -> Result<u16, libtest_mimic::Failed> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await??;
    Ok(answer.split(' ').nth(1).ok_or("no answer")?.parse()?)
}

/// Who sends more than anybody wants to hear still gets the answer, though it is given long before the end
/// of what is sent; and nobody is listened to for ever.
///
/// Proves: HTTP-1
async fn too_much_is_answered_before_the_connection_ends(store: Arc<dyn Store>) -> Told {
    let key = issue(&store, "acme").await?;
    let (address, _stops) =
        serve(Server::new().head_patience(PATIENCE), api(&store).patience(PATIENCE).router())
            .await?;
    let header = head(&key, &format!("x-huge: {}\r\n", "h".repeat(1 << 20)));
    let line = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "p".repeat(1 << 20));
    let many = head(&key, &"x-one: 1\r\n".repeat(100_000));
    let body = head(&key, "content-length: 8000000\r\n") + &"b".repeat(8_000_000);
    let stranger = head("lhk_nobody", "content-length: 8000000\r\n") + &"b".repeat(8_000_000);
    let cases = [("header", header, 431), ("line", line, 431), ("many", many, 431)];
    for (what, bytes, wanted) in
        cases.into_iter().chain([("body", body, 413), ("stranger", stranger, 401)])
    {
        for _ in 0..5 {
            assert_eq!(heard_out(address, bytes.as_bytes()).await?, wanted, "{what}");
        }
    }
    // A header without an end: the server has heard enough at some point, whoever still writes.
    let (mut reads, mut writes) = TcpStream::connect(address).await?.into_split();
    writes.write_all(b"GET / HTTP/1.1\r\nx-endless: ").await?;
    let pour = async { while writes.write_all(&[b'e'; 65_536]).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, pour).await?;
    let mut answer = Vec::new();
    let _reset = reads.read_to_end(&mut answer).await;
    Ok(())
}

/// A head that comes byte by byte, for as long as anybody listens; how it ended.
async fn trickle(address: SocketAddr) -> Vec<u8> {
    let (mut reads, mut writes) =
        TcpStream::connect(address).await.expect("a connection").into_split();
    let drip = async move {
        let slow = b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: "
            .iter()
            .chain(std::iter::repeat(&b'a'));
        for byte in slow {
            if writes.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut heard = Vec::new();
    tokio::select! {
        () = drip => {}
        _ = reads.read_to_end(&mut heard) => {}
        () = tokio::time::sleep(PATIENCE) => panic!("a slow head is listened to for ever"),
    }
    heard
}

/// All places are taken by slow heads; each ends by itself, and an honest request is answered.
///
/// Proves: HTTP-1
async fn slow_heads_end_and_hold_nobody_up(store: Arc<dyn Store>) -> Told {
    let server = Server::new().head_patience(Duration::from_millis(300)).connections_max(4);
    let (address, _stops) = serve(server, api(&store).router()).await?;
    let slow: Vec<_> = (0..4).map(|_| tokio::spawn(trickle(address))).collect();
    let request = b"GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(raw(address, request).await, 200);
    for slow in slow {
        let heard = String::from_utf8(slow.await?)?;
        assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 4"), "{heard}");
    }
    // Neither does a connection that says nothing stay.
    let mut silent = TcpStream::connect(address).await?;
    let ended = tokio::time::timeout(PATIENCE, silent.read(&mut [0])).await?;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    Ok(())
}

/// Proves: HTTP-1
async fn what_is_under_way_ends_before_the_server_does(store: Arc<dyn Store>) -> Told {
    let key = issue(&store, "acme").await?;
    let (address, stop) = serve(Server::new().grace(PATIENCE), api(&store).router()).await?;
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(head(&key, "content-length: 12\r\nexpect: 100-continue\r\n").as_bytes())
        .await?;
    // It is under way once the server asks for its body.
    let mut heard = [0; 25];
    stream.read_exact(&mut heard).await?;
    assert!(heard.starts_with(b"HTTP/1.1 100"), "{:?}", String::from_utf8_lossy(&heard));
    stop.cancel();
    stream.write_all(b"{\"source\":1}").await?;
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await??;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    Ok(())
}
