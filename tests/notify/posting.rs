//! The provider over HTTP: the key that goes with each message, the question by it, and what the
//! statuses mean.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::notify::{HttpProvider, HttpProviderBuilder, Notifier, RowStatus};
use leasehold::webhook::WayOut;
use leasehold::{State, Store};
use secrecy::SecretString;

use crate::sending::here;
use crate::server::{Act, Seen, Server};
use crate::telling::{add, row, run, stands, to};
use crate::{Told, stories};

stories![
    a_message_carries_its_key_and_is_asked_for_by_it,
    statuses_decide_over_rows,
    the_provider_is_asked_at_public_addresses_only,
];

/// What a provider on this machine has taken; whether it knows a key again, and can be asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Arc<Mutex<Vec<String>>>);

impl Taken {
    /// How many messages went out under a key.
    pub(crate) fn count(&self, key: &str) -> usize {
        self.0.lock().expect("no panic under this lock").iter().filter(|it| *it == key).count()
    }

    /// Answers as the provider does: a question by `GET`, a message by `POST`.
    pub(crate) fn answer(&self, seen: &Seen, knows_keys: bool) -> Act {
        let mut taken = self.0.lock().expect("no panic under this lock");
        let id = |key: &str| Act::Answer(200, "", format!(r#"{{"id":"m-{}"}}"#, &key[..8]));
        if seen.method == "GET" {
            let key = seen.path.rsplit('/').next().unwrap_or_default();
            return if taken.iter().any(|it| it == key) { id(key) } else { Act::status(404) };
        }
        let key = seen.header("idempotency-key");
        if !(knows_keys && taken.iter().any(|it| it == key)) {
            taken.push(key.to_owned());
        }
        id(key)
    }
}

pub(crate) fn provider(url: &str, looks_up: bool) -> HttpProviderBuilder {
    let way = WayOut::to(here()).timeout(Duration::from_secs(60));
    let provider = HttpProvider::builder(url).way_out(way);
    if looks_up { provider.lookup(format!("{url}/{{token}}")) } else { provider }
}

/// Proves: DEL-2, DEL-3, DEL-4
async fn a_message_carries_its_key_and_is_asked_for_by_it(store: Arc<dyn Store>) -> Told {
    let taken = Taken::default();
    let (answering, first) = (taken.clone(), Arc::new(Mutex::new(true)));
    let server = Server::start(move |seen| {
        let answer = answering.answer(seen, false);
        // The first message is taken, and nobody hears of it.
        match std::mem::take(&mut *first.lock().expect("no panic under this lock")) {
            true => Act::Close,
            false => answer,
        }
    });
    let server = server.await;
    let secret = SecretString::from("Bearer 7");
    let provider = provider(&server.url(), true).header("authorization", secret).build()?;
    assert!(!format!("{provider:?}").contains("Bearer"));
    let notifier = Arc::new(Notifier::new(store.clone(), provider));
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann@example.com"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    let row = row(&notifier, "ann@example.com").await?;
    assert_eq!(row.notification_id, Some(format!("m-{}", &row.token[..8])));
    let seen = server.seen();
    let asked: Vec<&str> = seen.iter().map(|it| it.method.as_str()).collect();
    assert_eq!((asked, taken.count(&row.token)), (vec!["POST", "GET"], 1));
    assert_eq!(seen[0].header("idempotency-key"), row.token);
    assert_eq!(seen[1].path, format!("/hook/{}", row.token));
    assert!(seen.iter().all(|it| it.header("authorization") == "Bearer 7"));
    let body =
        r#"{"recipient":"ann@example.com","subject":"change 7","version":1,"content":"merged"}"#;
    assert_eq!(String::from_utf8_lossy(&seen[0].body), body);
    Ok(())
}

/// Proves: DEL-7
async fn statuses_decide_over_rows(store: Arc<dyn Store>) -> Told {
    let cases = [
        (422, RowStatus::Failed, State::Waiting),
        (404, RowStatus::Failed, State::Waiting),
        (401, RowStatus::Sending, State::DeadLetter),
        (503, RowStatus::Sending, State::DeadLetter),
        (200, RowStatus::Sent, State::Succeeded),
    ];
    for (status, stood, state) in cases {
        let server = Server::always(Act::status(status)).await;
        let notifier = Notifier::new(store.clone(), provider(&server.url(), false).build()?);
        let notifier = Arc::new(notifier);
        let id = add(&store).await?;
        let name = format!("status {status}");
        // Versions keep the rows of the cases apart.
        let what = crate::telling::about(i64::from(status), &[&name]);
        run(&store, &notifier, &what).await?;
        let rows = notifier.rows(crate::telling::SUBJECT, i64::from(status)).await?;
        assert_eq!((rows[0].status, stands(&store, id).await?.state), (stood, state), "{status}");
        let sends = server.seen().iter().filter(|it| it.method == "POST").count();
        assert_eq!(sends, if status == 503 { 5 } else { 1 }, "{status}");
    }
    Ok(())
}

/// Proves: WH-4
async fn the_provider_is_asked_at_public_addresses_only(_: Arc<dyn Store>) -> Told {
    assert!(HttpProvider::builder("http://example.com/").build().is_err());
    assert!(HttpProvider::builder("no URL").build().is_err());
    let lookup = HttpProvider::builder("https://example.com/").lookup("http://example.com/{token}");
    assert!(lookup.build().is_err());
    Ok(())
}
