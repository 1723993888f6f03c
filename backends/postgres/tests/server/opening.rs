//! Owns what opening promises: when the schema is made, by whom, and what is refused.

use leasehold_core::{ErrorKind, StoreExt};
use leasehold_postgres::open;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::place::{Place, job};

/// Proves: MIG-1
pub(crate) async fn schema_is_made_only_when_told(place: Place) {
    let error = open(&place.url("")).await.expect_err("no schema");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    for part in ["0001", "migrate=auto", "USAGE", "SELECT, INSERT, UPDATE, DELETE"] {
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
    open(&place.url("&migrate=auto")).await.expect("made");
    let store = open(&place.url("")).await.expect("there now");
    assert!(store.enqueue_one(job(1)).await.expect("enqueued").is_new());
    let again = open(&place.url("&migrate=auto")).await.expect("up to date");
    assert_eq!(
        again.jobs(Default::default(), Default::default()).await.expect("found").items.len(),
        1
    );
}

/// Proves: MIG-1
pub(crate) async fn sixteen_open_at_once(place: Place) {
    open_at_once(&place, "").await;
}

/// Proves: MIG-1
pub(crate) async fn sixteen_open_under_a_strict_default(place: Place) {
    let strict = "&options=-c%20default_transaction_isolation%3Dserializable";
    open_at_once(&place, strict).await;
}

async fn open_at_once(place: &Place, parameters: &str) {
    let opening = (0..16).map(|_| {
        let url = place.url(&format!("&migrate=auto&pool_size=2{parameters}"));
        tokio::spawn(async move { open(&url).await })
    });
    for opened in opening.collect::<Vec<_>>() {
        opened.await.expect("no panic").expect("opened");
    }
    let session = place.session().await;
    let text = format!("select count(*) from \"{}\".schema", place.schema);
    let row = session.query_one(&text, &[]).await.expect("counted");
    assert_eq!(row.get::<_, i64>(0), 1);
}

/// Proves: MIG-1
pub(crate) async fn edited_migration_is_refused(place: Place) {
    drop(open(&place.url("&migrate=auto")).await.expect("made"));
    let session = place.session().await;
    let text = format!("update \"{}\".schema set checksum = '\\x00'", place.schema);
    session.execute(&text, &[]).await.expect("edited");
    let error = open(&place.url("&migrate=auto")).await.expect_err("edited");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// Proves: MIG-1
pub(crate) async fn missing_lifecycle_comes_back(place: Place) {
    drop(open(&place.url("&migrate=auto")).await.expect("made"));
    let session = place.session().await;
    let lose = format!("delete from \"{}\".lifecycles where name = 'standard'", place.schema);
    session.execute(&lose, &[]).await.expect("lost");
    let store = open(&place.url("")).await.expect("made whole");
    assert!(store.enqueue_one(job(1)).await.expect("its lifecycle is known").is_new());
}

/// Proves: MIG-1
pub(crate) async fn newer_schema_decides_who_may_read(place: Place) {
    drop(open(&place.url("&migrate=auto")).await.expect("made"));
    let session = place.session().await;
    let note = |number: i64, reader: i64| {
        format!(
            "insert into \"{}\".schema values ({number}, '\\x00', now(), {reader})",
            place.schema
        )
    };
    session.execute(&note(2, 1), &[]).await.expect("noted");
    open(&place.url("")).await.expect("older libraries may read on");
    session.execute(&note(3, 3), &[]).await.expect("noted");
    let error = open(&place.url("")).await.expect_err("too new");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

/// Proves: MIG-1, ERR-1
pub(crate) async fn role_without_rights_is_told_what_it_needs(place: Place) {
    drop(open(&place.url("&migrate=auto")).await.expect("made"));
    let session = place.session().await;
    let role = format!("role_{}", place.schema);
    session.batch_execute(&format!("create role {role} login")).await.expect("a role");
    let (scheme, rest) = place.server().split_once("://").expect("a URL");
    let (_, rest) = rest.split_once('@').expect("a user");
    let url = format!("{scheme}://{role}@{rest}&schema={}", place.schema);
    let error = open(&url).await.expect_err("no rights");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("USAGE"), "{error}");
    let grants = format!(
        "grant usage on schema \"{0}\" to {role};
        grant select, insert, update, delete on all tables in schema \"{0}\" to {role}",
        place.schema
    );
    session.batch_execute(&grants).await.expect("granted");
    let store = open(&url).await.expect("rights enough");
    assert!(store.enqueue_one(job(1)).await.expect("enqueued").is_new());
    drop(store);
    let clean = format!("drop owned by {role}; drop role {role}");
    session.batch_execute(&clean).await.expect("cleaned up");
}

/// A server that says one thing to whoever comes, and goes.
async fn says(words: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut heard = [0; 1024];
            let _begun = client.read(&mut heard).await;
            let _told = client.write_all(words).await;
            // Until the client goes too.
            while let Ok(1..) = client.read(&mut heard).await {}
        }
    });
    port
}

/// What stands in the way of a login is told apart: a password, a way to log in that nobody speaks, no TLS,
/// and what is no server of this kind.
///
/// Proves: ERR-1
pub(crate) async fn what_stands_in_the_way_is_told(_place: Place) {
    let login = "cannot be logged in to";
    for (words, kind, why) in [
        (b"R\0\0\0\x08\0\0\0\x03", ErrorKind::Unavailable, login),
        (b"R\0\0\0\x08\0\0\0\x02", ErrorKind::Unavailable, login),
        (b"1\0\0\0\x04\0\0\0\0", ErrorKind::Corrupt, "could not be read"),
    ] {
        let port = says(words).await;
        let error = open(&format!("postgres://me@127.0.0.1:{port}/app")).await.expect_err(why);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        if kind == ErrorKind::Unavailable {
            assert!(
                error.to_string().starts_with(&format!("open at 127.0.0.1:{port}: ")),
                "{error}"
            );
        }
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = nobody.local_addr().expect("an address").port();
    drop(nobody);
    let error = open(&format!("postgres://me@127.0.0.1:{port}/app")).await.expect_err("nobody");
    let wanted = format!("open at 127.0.0.1:{port}: unavailable: the server cannot be reached");
    assert!(error.to_string().starts_with(&wanted), "{error}");
}
