//! Owns a store in front of another that passes a hook before and after every verb that may write, and
//! hands the verb on. Refuses to know what a hook does: announce, wait, or never return.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::*;

/// What is passed before and after each verb that may write.
#[async_trait]
pub trait Steps: fmt::Debug + Send + Sync + 'static {
    /// Passes the place before a verb; an error keeps the verb from being sent, and is its answer.
    ///
    /// # Errors
    /// What the caller is to be told.
    async fn before(&self, verb: &'static str) -> Result<()>;

    /// Passes the place after a verb; an error takes the place of its answer.
    ///
    /// # Errors
    /// What the caller is to be told.
    async fn after(&self, verb: &'static str) -> Result<()>;
}

/// A store whose every write passes [`Steps`]. What joins a transaction of the engine's own does not.
#[derive(Debug)]
pub struct Watched {
    inner: Arc<dyn Store>,
    steps: Arc<dyn Steps>,
}

impl Watched {
    /// Puts steps in front of a store.
    pub fn new(inner: Arc<dyn Store>, steps: Arc<dyn Steps>) -> Arc<Self> {
        Arc::new(Self { inner, steps })
    }

    async fn pass<T>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.steps.before(verb).await?;
        let answer = call.await;
        self.steps.after(verb).await?;
        answer
    }
}

/// Hands the verbs of a trait on: those of the first list past the steps, the others at once.
macro_rules! hand_on {
    (
        $seam:ident by $of:ident
        { $($verb:ident($($name:ident: $kind:ty),*) -> $answer:ty;)* }
        { $($read:ident($($given:ident: $what:ty),*) -> $said:ty;)* }
        { $($rest:tt)* }
    ) => {
        #[async_trait]
        impl $seam for Watched {
            $(async fn $verb(&self, $($name: $kind),*) -> Result<$answer> {
                self.pass(stringify!($verb), self.inner.$of().$verb($($name),*)).await
            })*
            $(async fn $read(&self, $($given: $what),*) -> Result<$said> {
                self.inner.$of().$read($($given),*).await
            })*
            $($rest)*
        }
    };
}

hand_on! {
    Store by as_ref {
    enqueue(jobs: Vec<NewJob>) -> Vec<Result<Enqueued>>;
    claim(request: ClaimRequest) -> Vec<Claim>;
    renew(request: RenewRequest) -> Vec<Renewal>;
    progress(reports: Vec<Progress>) -> Vec<Result<()>>;
    settle(settlements: Vec<Settlement>) -> Vec<Result<Settled>>;
    reclaim(request: ReclaimRequest) -> Reclaimed;
    publish(events: Vec<NewEvent>) -> Vec<Published>;
    claim_events(request: EventClaimRequest) -> Vec<EventClaim>;
    renew_events(request: RenewRequest<EventFence>) -> Vec<Renewal>;
    settle_events(settlements: Vec<EventSettlement>) -> Vec<Result<()>>;
    control(act: Control) -> Controlled;
    prune(request: PruneRequest) -> Pruned;
    } {
    find(query: Query) -> Page<Found>;
    stats() -> Stats;
    } {
    fn hints(&self) -> Hints { self.inner.hints() }

    fn connections(&self) -> Option<usize> { self.inner.connections() }

    fn records(&self) -> &dyn Records { self }
    }
}

hand_on! {
    Records by records {
    put(document: PutDocument) -> Document;
    delete(document: DeleteDocument) -> bool;
    put_blob(blob: PutBlob) -> ();
    delete_blob(id: RecordId) -> bool;
    append(entry: AuditEntry) -> AuditId;
    once(request: Once) -> Remembered;
    admit(admission: Admission) -> Admitted;
    take(wish: Take) -> Taken;
    } {
    get(id: RecordId) -> Option<Document>;
    list(documents: ListDocuments) -> DocumentPage;
    get_blob(id: RecordId) -> Option<Vec<u8>>;
    audit(filter: AuditFilter, paging: Paging) -> Page<AuditView>;
    } {}
}
