//! Endpoints that are slow, hang or fail: what they cost others, and themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use leasehold::webhook::WayOut;
use leasehold::{CancellationToken, EventState, EventView, Store};

use crate::sending::{event, here, local, point, publish, relay, until, until_each, view};
use crate::server::{Act, Server};
use crate::{Told, stories};

stories![
    bad_endpoints_delay_no_healthy_one,
    a_broken_endpoint_costs_no_attempts,
    a_mended_endpoint_gets_a_probe_and_then_the_rest,
];

/// The shortest pause between two empty polls of the relays below, whose average is twice that.
const POLL_MIN: Duration = Duration::from_secs(30);

/// How long each of a few events took to reach the healthy endpoint, sent one after the other.
async fn healthy_ones_take(
    store: &Arc<dyn Store>,
    healthy: &Server,
    before: impl Future<Output = Told>,
) -> Result<Vec<Duration>, libtest_mimic::Failed> {
    // Whoever hangs does so for longer than this test lasts.
    let way = WayOut::to(here()).timeout(Duration::from_secs(3_600));
    let relay = relay(store, local(store).way_out(way))?;
    let relay = relay.poll(POLL_MIN * 2).grace(Duration::ZERO);
    let stop = CancellationToken::new();
    let story = async {
        let _ends_the_relay = stop.clone().drop_guard();
        before.await?;
        let mut took = Vec::new();
        for n in 0..8 {
            let begun = Instant::now();
            let id = publish(store, event("healthy", &n.to_string())?).await?;
            until(store, &[id], EventState::Delivered).await?;
            let came = healthy.seen().last().map(|seen| seen.at).expect("it came");
            took.push(came.saturating_duration_since(begun));
        }
        Ok::<_, libtest_mimic::Failed>(took)
    };
    let (ended, took) = tokio::join!(relay.run(stop.clone()), story);
    ended?;
    took
}

/// A slow, a hanging, a huge-bodied and a redirecting endpoint, all with a crowd of events waiting: the
/// healthy one is told as without them, give or take less than one poll.
///
/// Proves: WH-4, TX-5
async fn bad_endpoints_delay_no_healthy_one(store: Arc<dyn Store>) -> Told {
    let healthy = Server::always(Act::status(200)).await;
    point(&store, "healthy", healthy.url()).await?;
    let alone = healthy_ones_take(&store, &healthy, async { Ok(()) }).await?;
    let bad = [
        ("slow", Server::always(Act::After(Duration::from_secs(2), 200)).await),
        ("hanging", Server::always(Act::Hang).await),
        ("huge", Server::always(Act::Endless).await),
        ("elsewhere", Server::always(Act::Answer(302, "location: /\r\n", String::new())).await),
    ];
    for (name, server) in &bad {
        point(&store, name, server.url()).await?;
        let crowd = (0..10).map(|n| event(name, &n.to_string())).collect::<Result<Vec<_>, _>>()?;
        store.publish(crowd).await?;
    }
    let hurt = async {
        for (name, server) in &bad {
            let tried = tokio::time::timeout(Duration::from_secs(60), server.until_asked()).await;
            tried.map_err(|_| format!("{name} was not tried"))?;
        }
        Ok(())
    };
    let beside = healthy_ones_take(&store, &healthy, hurt).await?;
    assert_eq!(bad[1].1.seen().len(), 2, "no more hang at once, and none has ended");
    let longest = |took: &[Duration]| took.iter().max().copied().unwrap_or_default();
    let delayed = longest(&beside).saturating_sub(longest(&alone));
    assert!(delayed < POLL_MIN, "beside bad ones {beside:?}, alone {alone:?}");
    Ok(())
}

/// Proves: CB-1, WH-7
async fn a_broken_endpoint_costs_no_attempts(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(500)).await;
    point(&store, "told", server.url()).await?;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(publish(&store, event("told", &n.to_string())?.max_attempts(1)).await?);
    }
    let sink = local(&store).cooldown(Duration::from_secs(600));
    relay(&store, sink)?.at_once(1).run_until_idle().await?;
    assert_eq!(server.seen().len(), 5, "then it is left alone");
    let mut waiting = 0;
    for id in ids {
        let found = view(&store, id).await?;
        if found.state == EventState::Waiting {
            assert_eq!(found.attempts, 0);
            waiting += 1;
        }
    }
    assert_eq!(waiting, 7);
    Ok(())
}

/// An endpoint that fails five times and works from then on: a probe finds out, and nothing is lost but what was
/// tried before.
///
/// Proves: CB-1, WH-7
async fn a_mended_endpoint_gets_a_probe_and_then_the_rest(store: Arc<dyn Store>) -> Told {
    let count = AtomicU32::new(0);
    let server = Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0..5 => Act::status(500),
        _ => Act::status(200),
    });
    let server = server.await;
    point(&store, "told", server.url()).await?;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(publish(&store, event("told", &n.to_string())?.max_attempts(1)).await?);
    }
    let relay = relay(&store, local(&store).cooldown(Duration::from_millis(300)))?.at_once(1);
    let stop = CancellationToken::new();
    let story = async {
        let _ends_the_relay = stop.clone().drop_guard();
        let is_over =
            |found: &EventView| !matches!(found.state, EventState::Waiting | EventState::Leased);
        until_each(&store, &ids, is_over).await
    };
    let (ended, story) = tokio::join!(relay.run(stop.clone()), story);
    story.and(ended.map_err(Into::into))?;
    assert_eq!(server.seen().len(), 12, "one request an event: none was tried in vain");
    let mut delivered = 0;
    for id in ids {
        let found = view(&store, id).await?;
        assert_eq!(found.attempts, 1);
        delivered += u32::from(found.state == EventState::Delivered);
    }
    assert_eq!(delivered, 7);
    Ok(())
}
