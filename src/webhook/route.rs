//! Owns the way of an event to the URL that its job names. Each URL becomes an endpoint of the store, so
//! that it can be paused, and is disabled once it is gone, like any other.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::event::Ordering;
use leasehold_core::{Error, Failure, FailureCode, Result, Store, StoreExt};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::endpoint::{BY_URL, Endpoints};
use super::scheme::hex;
use super::sink::Route;
use crate::relay::Delivery;

/// Every event goes to the URL that a member of its job's payload names; where it names none, nowhere.
///
/// Events that belong to no job go to the endpoint that has their topic's name, if there is one.
#[derive(Clone, Debug)]
pub struct ByJob {
    store: Arc<dyn Store>,
    member: String,
}

impl ByJob {
    /// Reads the URL from this member of the payload.
    pub fn new(store: Arc<dyn Store>, member: impl Into<String>) -> Self {
        Self { store, member: member.into() }
    }

    async fn url(&self, event: &Delivery) -> Result<Option<String>> {
        let Ordering::Job(job) = &event.ordering else { return Ok(None) };
        let Some(job) = self.store.job(*job).await? else { return Ok(None) };
        let payload: Option<Value> = serde_json::from_str(job.payload.as_str()).ok();
        let url = payload.and_then(|payload| Some(payload.get(&self.member)?.as_str()?.to_owned()));
        Ok(url)
    }
}

/// The name of a URL's endpoint.
fn name_of(url: &str) -> String {
    format!("{BY_URL}{}", hex(&Sha256::digest(url.as_bytes())))
}

#[async_trait]
impl Route for ByJob {
    async fn route(&self, event: &Delivery) -> Result<Option<String>, Failure> {
        let unread =
            |error: Error| Failure::new(FailureCode::UpstreamUnavailable, error.to_string());
        if !matches!(event.ordering, Ordering::Job(_)) {
            let known = Endpoints::of(self.store.clone()).get(event.topic.as_str()).await;
            return Ok(known.map_err(unread)?.map(|_| event.topic.as_str().to_owned()));
        }
        let Some(url) = self.url(event).await.map_err(unread)? else { return Ok(None) };
        let (name, endpoints) = (name_of(&url), Endpoints::of(self.store.clone()));
        endpoints.use_url(&name, &url).await.map_err(unread)?;
        Ok(Some(name))
    }
}
