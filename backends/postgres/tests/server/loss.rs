//! Owns what a store makes of connections that break and transactions that have failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_conformance::sweep;
use leasehold_core::lab::LabStore;
use leasehold_core::{ErrorKind, Failure, FailureCode, Settlement, Store, StoreExt, Verdict};
use leasehold_postgres::tokio_postgres::Config;
use leasehold_postgres::tokio_postgres::config::Host;
use leasehold_postgres::{PostgresStore, open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::place::{Place, fill, job, soon, take};

/// Proves: ERR-1, GLO-2
pub(crate) async fn dead_connections_are_replaced(place: Place) {
    drop(open(&place.url("&migrate=auto")).await.expect("made"));
    let name = format!("app_{}", place.schema);
    let store = open(&place.url(&format!("&application_name={name}"))).await.expect("a store");
    assert!(store.enqueue_one(job(1)).await.expect("enqueued").is_new());
    let session = place.session().await;
    let ends = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
    let ended = session.query(ends, &[&name]).await.expect("ended").len();
    assert!(ended > 0);
    // A call that takes a connection before its end is heard of fails, and takes it away; no more than there were.
    for tried in 0..=ended {
        match store.enqueue_one(job(2)).await {
            Ok(enqueued) => return assert!(enqueued.is_new()),
            Err(error) => {
                assert!(tried < ended && error.kind() == ErrorKind::Unavailable, "{error}")
            }
        }
    }
}

/// Proves: ERR-1, TX-2
pub(crate) async fn failed_transaction_asks_for_a_restart(place: Place) {
    let store = place.store().await;
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    tx.execute("select 1 / 0", &[]).await.expect_err("nonsense");
    let error = store.join(&tx).enqueue(&[job(1)]).await.expect_err("failed already");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.is_transaction_restart());
}

/// Proves: ERR-1, GLO-2
pub(crate) async fn lost_reply_to_a_commit_is_unknown(place: Place) {
    let direct = place.store().await;
    let cuts = Arc::new(AtomicBool::new(false));
    let port = relay(place.server(), Arc::clone(&cuts)).await;
    let url = format!(
        "postgres://postgres@127.0.0.1:{port}/postgres?schema={}&pool_size=2",
        place.schema
    );
    let store = open(&url).await.expect("a store behind the relay");
    let new = job(1);
    cuts.store(true, Ordering::SeqCst);
    let error = store.enqueue_one(new.clone()).await.expect_err("no reply");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    cuts.store(false, Ordering::SeqCst);
    // The commit had arrived; the repeat is recognised.
    let again = store.enqueue_one(new.clone()).await.expect("repeated");
    assert_eq!((again.job(), again.is_new()), (new.id, false));
    assert!(direct.job(new.id).await.expect("found").is_some());
}

/// Proves: ERR-1
pub(crate) async fn damaged_row_fails_its_own_item_only(place: Place) {
    let store = place.store().await;
    fill(&store, 2).await;
    let claims = take(&store, 2).await;
    let damage = format!("update \"{}\".jobs set lifecycle = '' where id = $1", place.schema);
    let session = place.session().await;
    session.execute(&damage, &[&claims[0].fence.job().as_uuid()]).await.expect("damaged");
    let ends = claims.iter();
    let ends = ends.map(|it| Settlement::new(it.fence, Verdict::Succeed { result: None }));
    let answers = store.settle(ends.collect()).await.expect("answered");
    assert_eq!(answers[0].as_ref().expect_err("damaged").kind(), ErrorKind::Corrupt);
    assert!(answers[1].is_ok(), "{answers:?}");
}

/// Somebody's trigger throws away what a verb writes: the verb fails, and leaves nothing.
///
/// Proves: ERR-1, GLO-2
pub(crate) async fn write_that_is_thrown_away_is_no_success(place: Place) {
    let jobs = ["end", "end_two", "succeed", "retry", "fail", "release", "reclaim", "cancel"];
    let others = [
        ("claim_events", "events"),
        ("succeed_parent", "waits"),
        ("note_letter", "dead_letters"),
        ("replay", "dead_letters"),
    ];
    let session = place.session().await;
    for (verb, table) in jobs.map(|verb| (verb, "jobs")).into_iter().chain(others) {
        let (store, _clock) = place.manual().await;
        sweep::prepare(&store, verb).await.expect("prepared");
        let before = store.dump().await.expect("dumped");
        let trigger = format!(
            "create function \"{0}\".away() returns trigger language plpgsql as 'begin return null; end'; \
             create trigger away before update on \"{0}\".{table} for each row execute function \"{0}\".away()",
            place.schema
        );
        session.batch_execute(&trigger).await.expect("a trigger");
        let error = sweep::run(&store, verb).await.expect_err(verb);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{verb}: {error}");
        let left = before.difference(&store.dump().await.expect("dumped"));
        assert!(left.is_empty(), "{verb} left {left}");
    }
}

/// A call may be dropped wherever it stands: its transaction goes, and its connection serves the next one.
///
/// Proves: GLO-2, TX-1
pub(crate) async fn dropped_calls_leave_nothing_open(place: Place) {
    let name = format!("dropped_{}", std::process::id());
    let join = if place.server().contains('?') { '&' } else { '?' };
    let url = format!("{}{join}pool_size=2&application_name={name}", place.server());
    let store = PostgresStore::lab(&url, &place.schema, None).await.expect("a store");
    fill(&store, 1).await;
    let claim = take(&store, 1).await.remove(0);
    for micros in (0..6_000).step_by(150) {
        let failure = Failure::new(FailureCode::WorkerLost, "gone");
        let end = Settlement::new(claim.fence, Verdict::Retry { failure, delay: None });
        let call = store.settle_one(end);
        let _dropped = tokio::time::timeout(Duration::from_micros(micros), call).await;
    }
    let session = place.session().await;
    let text = "select count(*) from pg_stat_activity where application_name = $1 \
                and state like 'idle in transaction%'";
    let none_open = async {
        while session.query_one(text, &[&name]).await.expect("a count").get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of each transaction", none_open).await;
    assert!(store.enqueue_one(job(2)).await.expect("it serves on").is_new());
}

/// Relays connections to the server's socket; while `cuts`, a COMMIT goes through and its connection
/// ends before the reply.
async fn relay(server: &str, cuts: Arc<AtomicBool>) -> u16 {
    let socket = socket(server);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = UnixStream::connect(&socket).await.expect("the server");
            tokio::spawn(carry(client, server, Arc::clone(&cuts)));
        }
    });
    port
}

/// Where the server's socket lies.
pub(crate) fn socket(server: &str) -> PathBuf {
    let config: Config = server.parse().expect("a URL");
    let folder = match config.get_hosts() {
        [Host::Unix(folder), ..] => folder.clone(),
        other => panic!("no socket: {other:?}"),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    folder.join(format!(".s.PGSQL.{port}"))
}

async fn carry(client: TcpStream, server: UnixStream, cuts: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            to_server.write_all(&buffer[..read]).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    let back = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            let is_reply = buffer[..read].windows(7).any(|it| it == b"COMMIT\0");
            if is_reply && cuts.load(Ordering::SeqCst) {
                // The server has committed; its reply is never carried.
                return Ok(());
            }
            to_client.write_all(&buffer[..read]).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    tokio::select! {
        _ = there => {}
        _ = back => {}
    }
}
