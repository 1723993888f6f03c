//! Owns a handler that mails a receipt for each order, in two forms, and the judge of both. The careless
//! one mails from inside the handler, beyond the fence; the careful one leaves the receipt to the outbox,
//! where it is stored with the end of the job or not at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold::{
    Context, EventFilter, Handled, JobId, JobKind, Json, NewEvent, NewJob, Paging, Query, Result,
    Store, Topic, Worker,
};
use leasehold_conformance::faults::harm::Harmed;
use leasehold_conformance::faults::survive::Subject;
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_core::{State, Timestamp};

const ORDERS: usize = 2;

/// How the receipt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// At once, whatever becomes of the claim.
    Careless,
    /// With the settlement.
    Careful,
}

/// A mail server that keeps what it has sent.
#[derive(Debug, Default)]
pub(crate) struct Post(Mutex<Vec<JobId>>);

impl Post {
    fn sent(&self) -> MutexGuard<'_, Vec<JobId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shop: its jobs, its handler, what it expects in the end.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) form: Form,
    post: Arc<Post>,
}

impl Shop {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, post: Arc::default() }
    }

    async fn receipt(
        form: Form,
        post: Arc<Post>,
        harmed: Arc<Harmed>,
        context: Context,
    ) -> Result<Handled> {
        match form {
            Form::Careless => {
                post.sent().push(context.job().id);
                harmed.effect("mail").await;
                Ok(Handled::done())
            }
            Form::Careful => {
                let order = Json::of(&context.job().id.to_string())?;
                Ok(Handled::done().event(NewEvent::new(Topic::new("receipt")?, order)))
            }
        }
    }
}

#[async_trait]
impl Subject for Shop {
    async fn begin(&self) -> Result<Arc<dyn LabStore>> {
        self.post.sent().clear();
        let store = MemoryStore::lab(Timestamp::saturating(1_700_000_000_000_000));
        let order = || Ok(NewJob::new(JobKind::new("order")?, Json::null()));
        for answer in store.enqueue((0..ORDERS).map(|_| order()).collect::<Result<_>>()?).await? {
            let _new = answer?;
        }
        Ok(Arc::new(store))
    }

    async fn work(&self, store: Arc<dyn Store>, harmed: Arc<Harmed>) -> Result<()> {
        let (form, post) = (self.form, Arc::clone(&self.post));
        let worker = Worker::builder(store)
            .handler(JobKind::new("order")?, move |context: Context, (): ()| {
                let (post, harmed) = (Arc::clone(&post), Arc::clone(&harmed));
                async move { Ok(Self::receipt(form, post, harmed, context).await?) }
            })
            .slots(1)
            .upkeep(None)
            .build();
        worker.run_until_idle().await
    }

    async fn judge(&self, store: &dyn LabStore) -> Result<Vec<String>> {
        let jobs = store.find(Query::Jobs(Default::default(), Paging::first(100))).await?;
        let receipts = EventFilter::new().topic(Topic::new("receipt")?);
        let receipts = store.find(Query::Events(receipts, Paging::first(100))).await?.items.len();
        let sent = self.post.sent().len() + receipts;
        let mut wrong = Vec::new();
        let done = jobs.items.iter().filter(
            |job| matches!(job, leasehold::Found::Job(job) if job.state == State::Succeeded),
        );
        let done = done.count();
        if done != ORDERS {
            wrong.push(format!("{done} of {ORDERS} orders are done"));
        }
        if sent != ORDERS {
            wrong.push(format!("{sent} receipts for {ORDERS} orders"));
        }
        Ok(wrong)
    }
}
