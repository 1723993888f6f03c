//! Requests that nobody should send.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use leasehold::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::asking::{api, issue, jobs, posted, send};
use crate::{Told, stories};

stories![malformed_requests_get_a_clean_answer, a_served_api_survives_hostile_clients,];

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

/// The status of whatever comes back, 0 for a connection that is closed without a word.
async fn raw(address: std::net::SocketAddr, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let _closed_early = stream.write_all(bytes).await;
    let mut answer = vec![0; 4_096];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut answer)).await;
    let length = read.expect("an answer or an end").unwrap_or(0);
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Proves: HTTP-1
async fn a_served_api_survives_hostile_clients(store: Arc<dyn Store>) -> Told {
    let (key, patience) = (issue(&store, "acme").await?, Duration::from_millis(400));
    let router = api(&store).patience(patience).router();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let head = |more: &str| {
        format!(
            "POST /transcode HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\nidempotency-key: order-7\r\n{more}\r\n"
        )
    };
    let huge = head(&format!("x-huge: {}\r\n", "h".repeat(1 << 20)));
    let status = raw(address, huge.as_bytes()).await;
    assert!((400..500).contains(&status) || status == 0, "a header of a mebibyte: {status}");
    // A body that never comes.
    let begun = Instant::now();
    let status = raw(address, head("content-length: 100\r\n").as_bytes()).await;
    assert_eq!(status, 408);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let lies = [
        head("content-length: 99999999999\r\n"),
        head("content-length: -1\r\n"),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
        "GET /transcode/status?job_id=\u{fffd} HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
    ];
    for bytes in lies {
        let status = raw(address, bytes.as_bytes()).await;
        assert!((400..500).contains(&status) || status == 0, "{bytes:?}: {status}");
    }
    let status = raw(address, b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!((400..500).contains(&status) || status == 0, "{status}");
    let fine = head("content-length: 12\r\nconnection: close\r\n") + "{\"source\":1}";
    assert_eq!(raw(address, fine.as_bytes()).await, 202, "and it still serves");
    server.abort();
    Ok(())
}
