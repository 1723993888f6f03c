//! Owns the list of a store's verbs by which a store in front of another hands them on. Refuses to know
//! what that store does before and after.

/// Has a type with `inner`, `pass` and `read` be a store: writes go by `pass`, what only reads by `read`.
macro_rules! hand_on {
    ($kind:ident) => {
        $crate::hand_on::verbs! {
            $kind: Store by as_ref {
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
            look(scope: StatsScope) -> Stats;
            } {
            fn hints(&self) -> Hints { self.inner.hints() }

            fn connections(&self) -> Option<usize> { self.inner.connections() }

            fn records(&self) -> &dyn Records { self }
            }
        }

        $crate::hand_on::verbs! {
            $kind: Records by records {
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
    };
}

/// Hands the verbs of one trait on: those of the first list by `pass`, the others by `read`.
macro_rules! verbs {
    (
        $kind:ident: $seam:ident by $of:ident
        { $($verb:ident($($name:ident: $what:ty),*) -> $answer:ty;)* }
        { $($read:ident($($given:ident: $sort:ty),*) -> $said:ty;)* }
        { $($rest:tt)* }
    ) => {
        #[async_trait]
        impl $seam for $kind {
            $(async fn $verb(&self, $($name: $what),*) -> Result<$answer> {
                self.pass(stringify!($verb), self.inner.$of().$verb($($name),*)).await
            })*
            $(async fn $read(&self, $($given: $sort),*) -> Result<$said> {
                self.read(stringify!($read), self.inner.$of().$read($($given),*)).await
            })*
            $($rest)*
        }
    };
}

pub(crate) use {hand_on, verbs};
