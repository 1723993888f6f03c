//! Where the sink refuses to go, whatever a name resolves to, and whom it trusts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold::webhook::{Resolve, SinkBuilder, Targets, WayOut, WebhookSink};
use leasehold::{EventState, Store, async_trait};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::sending::{event, point, publish, relay, signer, view};
use crate::server::{Act, Server};
use crate::{Told, stories};

stories![
    private_targets_are_refused_in_every_form,
    a_name_is_judged_by_what_it_resolves_to,
    only_trusted_certificates_are_taken,
];

fn public(store: &Arc<dyn Store>) -> SinkBuilder {
    WebhookSink::builder(store.clone(), signer()).way_out(Targets::public().allow_http())
}

/// Delivers one event and gives its state and failure.
async fn outcome(
    store: &Arc<dyn Store>,
    name: &str,
    url: String,
    sink: SinkBuilder,
) -> Result<(EventState, String), libtest_mimic::Failed> {
    point(store, name, url).await?;
    let id = publish(store, event(name, "1")?.max_attempts(1)).await?;
    relay(store, sink)?.run_until_idle().await?;
    let found = view(store, id).await?;
    Ok((found.state, found.failure.map_or_else(String::new, |json| json.as_str().to_owned())))
}

/// Proves: WH-4
async fn private_targets_are_refused_in_every_form(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(200)).await;
    let port = server.address.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "0",
        "0.0.0.0",
        "localhost",
        "localhost.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
    ];
    for (n, host) in hosts.into_iter().enumerate() {
        let url = format!("http://{host}:{port}/hook");
        let sink = public(&store);
        let (state, why) = outcome(&store, &format!("host {n}"), url, sink).await?;
        assert_eq!(state, EventState::DeadLetter, "{host}");
        // Where this machine does not know the form, the name is not resolved, which is as good.
        let fits = ["POLICY_REJECTED", "DNS_FAILED"].iter().any(|code| why.contains(code));
        assert!(fits, "{host}: {why}");
    }
    let odd = [
        format!("http://user:secret@1.1.1.1:{port}/"),
        format!("http://1.1.1.1@127.0.0.1:{port}/"),
        "ftp://1.1.1.1/".to_owned(),
        "/hook".to_owned(),
        "http:///hook".to_owned(),
        String::new(),
    ];
    for (n, url) in odd.into_iter().enumerate() {
        let (_, why) = outcome(&store, &format!("odd {n}"), url.clone(), public(&store)).await?;
        assert!(why.contains("POLICY_REJECTED") && !why.contains("secret"), "{url}: {why}");
    }
    let plain = WebhookSink::builder(store.clone(), signer());
    let (_, why) = outcome(&store, "plain", "http://1.1.1.1/".to_owned(), plain).await?;
    assert!(why.contains("POLICY_REJECTED") && why.contains("scheme"), "{why}");
    assert!(server.seen().is_empty(), "nobody came through");
    // By explicit word it is reached.
    let sink = public(&store).way_out(Targets::public().allow_http().allow_private());
    assert_eq!(outcome(&store, "meant", server.url(), sink).await?.0, EventState::Delivered);
    Ok(())
}

/// Answers with one list after the other.
#[derive(Debug)]
struct Lists(Vec<Vec<SocketAddr>>, Arc<AtomicUsize>);

#[async_trait]
impl Resolve for Lists {
    async fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        let at = self.1.fetch_add(1, Ordering::SeqCst);
        match self.0.get(at) {
            Some(list) if !list.is_empty() => Ok(list.clone()),
            _ => Err(std::io::Error::other("nobody knows it")),
        }
    }
}

/// Proves: WH-4
async fn a_name_is_judged_by_what_it_resolves_to(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(200)).await;
    let here = server.address;
    let (far, inner): (SocketAddr, SocketAddr) = ("1.1.1.1:9".parse()?, "10.0.0.1:9".parse()?);
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{}", here.port()).parse()?;
    let cases = [
        (vec![here], "POLICY_REJECTED"),
        (vec![far, here], "POLICY_REJECTED"),
        (vec![far, inner], "POLICY_REJECTED"),
        (vec![mapped], "POLICY_REJECTED"),
        (vec![], "DNS_FAILED"),
    ];
    let open = WayOut::to(Targets::public().allow_http());
    for (n, (list, code)) in cases.into_iter().enumerate() {
        let asked = Arc::new(AtomicUsize::new(0));
        // Whoever asked a second time would get another answer.
        let sink = public(&store)
            .way_out(open.clone().resolver(Lists(vec![list, vec![here]], asked.clone())));
        let url = "http://hook.example/".to_owned();
        let (_, why) = outcome(&store, &format!("list {n}"), url, sink).await?;
        assert!(why.contains(code), "{n}: {why}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "one look-up, and nothing after it");
    }
    assert!(server.seen().is_empty(), "nobody came through");
    let targets = Targets::public().allow_http().allow(IpAddr::from([127, 0, 0, 1]));
    for list in [here, mapped] {
        let lists = Lists(vec![vec![list]], Arc::default());
        let sink = public(&store).way_out(WayOut::to(targets.clone()).resolver(lists));
        let url = "http://hook.example/".to_owned();
        assert_eq!(outcome(&store, "listed", url, sink).await?.0, EventState::Delivered);
    }
    Ok(())
}

/// Proves: WH-4
async fn only_trusted_certificates_are_taken(store: Arc<dyn Store>) -> Told {
    let made = rcgen::generate_simple_self_signed(["hook.example".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let tls = TlsAcceptor::from(Arc::new(config));
    let server = Server::start_with(Some(tls), Arc::new(|_| Act::status(200))).await;
    let sink = |host_known: bool| {
        let targets = Targets::public().allow(IpAddr::from([127, 0, 0, 1]));
        let lists = Lists(vec![vec![server.address]; 9], Arc::default());
        let mut way = WayOut::to(targets).resolver(lists);
        if host_known {
            way = way.trust(made.cert.pem().as_bytes())?;
        }
        let sink = WebhookSink::builder(store.clone(), signer()).way_out(way);
        Ok::<_, leasehold::Error>(sink)
    };
    let cases = [
        ("https://hook.example/", true, EventState::Delivered),
        ("https://hook.example/", false, EventState::DeadLetter),
        ("https://other.example/", true, EventState::DeadLetter),
    ];
    for (n, (url, trusted, state)) in cases.into_iter().enumerate() {
        let got = outcome(&store, &format!("tls {n}"), url.to_owned(), sink(trusted)?).await?;
        assert_eq!(got.0, state, "{url} {trusted}: {}", got.1);
    }
    assert_eq!(server.seen().len(), 1);
    assert!(WayOut::default().trust(b"no certificate").is_err());
    Ok(())
}
