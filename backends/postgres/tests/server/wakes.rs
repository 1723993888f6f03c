//! Owns what is heard between processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{StreamExt, poll_fn};
use leasehold_core::{ClaimRequest, HintKind, JobKind, Json, NewJob, Store, StoreExt, WorkerId};
use leasehold_postgres::tokio_postgres::{AsyncMessage, NoTls};
use leasehold_postgres::{PostgresStore, open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

use crate::loss::socket;
use crate::place::{Place, job, queue, soon};

/// Proves: WQ-3
pub(crate) async fn enqueue_wakes_another_process(place: Place) {
    let one = place.store().await;
    let two = open(&place.url("")).await.expect("a second store");
    until_heard(&two, true).await;
    for number in 0..3 {
        let mut listener = two.hints().listen(HintKind::Jobs);
        assert!(one.enqueue_one(job(number)).await.expect("enqueued").is_new());
        soon("a wake-up", listener.heard()).await;
    }
}

/// Proves: WQ-3
pub(crate) async fn lost_connection_comes_back(place: Place) {
    let name = format!("app_{}", place.schema);
    let url = place.url(&format!("&migrate=auto&application_name={name}"));
    let store = open(&url).await.expect("a store");
    soon("the catch-up", store.hints().listen(HintKind::Jobs).heard()).await;
    let mut listener = store.hints().listen(HintKind::Jobs);
    let session = place.session().await;
    let ends = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
    assert!(!session.query(ends, &[&name]).await.expect("ended").is_empty());
    soon("the catch-up of the next connection", listener.heard()).await;
}

/// Waits until wake-ups of other processes are heard, or are not.
async fn until_heard(store: &PostgresStore, heard: bool) {
    let told = async {
        while store.stats().await.expect("figures").wake_ups_heard != Some(heard) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon("the listener's state", told).await;
}

/// Proves: WQ-3, GLO-4
pub(crate) async fn killed_listener_listens_again(place: Place) {
    let one = place.store().await;
    let name = format!("app_{}", place.schema);
    let two = open(&place.url(&format!("&application_name={name}"))).await.expect("a second store");
    until_heard(&two, true).await;
    let session = place.session().await;
    let ends = "select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = $1 and query like '%pg_backend_pid()%'";
    for number in 0..3 {
        let mut listener = two.hints().listen(HintKind::Jobs);
        assert_eq!(session.query(ends, &[&name]).await.expect("ended").len(), 1);
        soon("the catch-up of the next connection", listener.heard()).await;
        until_heard(&two, true).await;
        let mut listener = two.hints().listen(HintKind::Jobs);
        assert!(one.enqueue_one(job(number)).await.expect("enqueued").is_new());
        soon("a wake-up", listener.heard()).await;
    }
}

/// Proves: WQ-3, GLO-4
pub(crate) async fn silent_connection_is_given_up(place: Place) {
    let one = place.store().await;
    let silent = Arc::new(AtomicBool::new(false));
    let port = forward(place.server(), Arc::clone(&silent)).await;
    let target = format!("postgres://postgres@127.0.0.1:{port}/postgres?schema={}", place.schema);
    let two = open(&target).await.expect("a store behind the proxy");
    until_heard(&two, true).await;
    let (state, mut listener) = (two.clone(), two.hints().listen(HintKind::Jobs));
    // The proxy keeps its connections and forwards nothing more, without a word.
    silent.store(true, Ordering::SeqCst);
    assert!(one.enqueue_one(job(1)).await.expect("enqueued").is_new());
    let unheard = tokio::time::timeout(Duration::from_secs(1), listener.heard()).await;
    assert!(unheard.is_err(), "nothing comes through");
    let noticed = async {
        while state.hears_wake_ups() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon("word of the silence", noticed).await;
    // The way is free again for new connections; those from before stay silent.
    silent.store(false, Ordering::SeqCst);
    soon("the catch-up of the next connection", listener.heard()).await;
    let mut listener = two.hints().listen(HintKind::Jobs);
    assert!(one.enqueue_one(job(2)).await.expect("enqueued").is_new());
    soon("a wake-up", listener.heard()).await;
}

/// Forwards connections to the server; one that was open while `silent` forwards nothing ever after.
async fn forward(server: &str, silent: Arc<AtomicBool>) -> u16 {
    let socket = socket(server);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = UnixStream::connect(&socket).await.expect("the server");
            let silent = Arc::clone(&silent);
            tokio::spawn(async move {
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let there = carry_on(from_client, to_server, Arc::clone(&silent));
                let back = carry_on(from_server, to_client, silent);
                tokio::join!(there, back);
            });
        }
    });
    port
}

async fn carry_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    silent: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; 65_536];
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            read = from.read(&mut buffer) => match read {
                Ok(read @ 1..) if to.write_all(&buffer[..read]).await.is_ok() => {}
                _ => return,
            },
        }
        if silent.load(Ordering::SeqCst) {
            // Holds both ends open.
            std::future::pending::<()>().await;
        }
    }
}

/// Proves: WQ-3, WQ-2
pub(crate) async fn notifications_stay_short_and_few(place: Place) {
    let store = place.store().await;
    let (client, mut connection) =
        leasehold_postgres::tokio_postgres::connect(place.server(), NoTls)
            .await
            .expect("a session");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                let _over = tell.send(notification.payload().to_owned());
            }
        }
    });
    client.batch_execute(&format!("listen \"leasehold_{}\"", place.schema)).await.expect("listens");
    let name = format!("A\"'é;{}", "\"Q".repeat(96));
    assert_eq!(name.len(), 198);
    let large = Json::parse(format!("\"{}\"", "x".repeat(1_000_000))).expect("JSON");
    let large = NewJob::new(JobKind::new("resize").expect("a kind"), large);
    assert!(store.enqueue_one(large.queue(queue(&name))).await.expect("a megabyte").is_new());
    let many = (0..10_000).map(|number| job(number).queue(queue(&name))).collect();
    assert!(store.enqueue(many).await.expect("the largest batch").iter().all(Result::is_ok));
    for number in 0..200 {
        assert!(store.enqueue_one(job(number).queue(queue(&name))).await.expect("one").is_new());
    }
    let mut all = vec![soon("a notification", told.recv()).await.expect("told")];
    // Until it is quiet: nothing says which is the last.
    while let Ok(Some(payload)) = tokio::time::timeout(Duration::from_secs(1), told.recv()).await {
        all.push(payload);
    }
    assert!(all.iter().all(|payload| payload == "jobs"), "{all:?}");
    assert!((1..=202).contains(&all.len()), "{} notifications", all.len());
    let claims = ClaimRequest::new(WorkerId::new(), [queue(&name)]).limit(5);
    assert_eq!(store.claim(claims).await.expect("claimed").len(), 5);
}
