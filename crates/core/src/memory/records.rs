//! Owns the records of the in-memory store: load, ask the rules, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{Blob, Facts, State};
use super::upkeep::{counted, oldest};
use crate::error::Result;
use crate::query::{Cursor, Page, Paging};
use crate::record::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, ListDocuments, Once, PutBlob, PutDocument, RecordId, Records, Remembered, Take,
    Taken,
};
use crate::row::{AuditRow, DocumentRow};
use crate::rules::records as rules;
use crate::upkeep::Pruned;

impl State {
    pub(super) fn put(&mut self, facts: &Facts<'_>, put: &PutDocument) -> Result<Document> {
        put.check(facts.limits)?;
        let row = rules::put_document(facts.now, self.documents.get(&put.id).cloned(), put)?;
        let stored = rules::stored(&row, &put.body);
        self.documents.insert(row.id.clone(), row);
        Ok(stored)
    }

    pub(super) fn get(&self, facts: &Facts<'_>, id: &RecordId) -> Option<Document> {
        rules::document(self.documents.get(id)?.clone(), facts.now)
    }

    pub(super) fn delete(&mut self, facts: &Facts<'_>, delete: &DeleteDocument) -> Result<bool> {
        let (keep, found) = (facts.limits.tombstone_ttl, self.documents.get(&delete.id).cloned());
        let row = rules::delete_document(facts.now, keep, found, delete)?;
        let deleted = row.is_some();
        self.documents.extend(row.map(|row| (row.id.clone(), row)));
        Ok(deleted)
    }

    pub(super) fn list(&self, facts: &Facts<'_>, list: &ListDocuments) -> Result<DocumentPage> {
        list.check()?;
        let wanted = |row: &&DocumentRow| {
            row.id.namespace == list.namespace
                && row.id.key.as_str().starts_with(&list.prefix)
                && list.after.as_ref().is_none_or(|after| row.id.key > *after)
        };
        let found = self.documents.values().filter(wanted).cloned();
        let live = found.filter_map(|row| rules::document(row, facts.now));
        Ok(DocumentPage::cut(live.take(list.limit + 1).collect(), list.limit, facts.now))
    }

    pub(super) fn put_blob(&mut self, facts: &Facts<'_>, put: &PutBlob) -> Result<()> {
        put.check(facts.limits)?;
        let blob = Blob {
            bytes: Arc::from(put.bytes.as_slice()),
            #[cfg(feature = "lab")]
            created_at: facts.now,
            expires_at: put.ttl.map(|ttl| facts.now.plus(ttl)),
        };
        self.blobs.insert(put.id.clone(), blob);
        Ok(())
    }

    pub(super) fn get_blob(&self, facts: &Facts<'_>, id: &RecordId) -> Option<Vec<u8>> {
        let blob = self.blobs.get(id)?;
        blob.expires_at.is_none_or(|at| at > facts.now).then(|| blob.bytes.to_vec())
    }

    pub(super) fn delete_blob(&mut self, facts: &Facts<'_>, id: &RecordId) -> bool {
        let gone = self.blobs.remove(id);
        gone.is_some_and(|blob| blob.expires_at.is_none_or(|at| at > facts.now))
    }

    pub(super) fn append(&mut self, facts: &Facts<'_>, entry: &AuditEntry) -> Result<AuditId> {
        entry.check()?;
        let row = AuditRow::of(entry, facts.ids.next(), facts.now);
        let id = AuditId::from_uuid(row.id);
        self.audit.insert(row.id, row);
        Ok(id)
    }

    pub(super) fn audit(&self, filter: &AuditFilter, paging: &Paging) -> Result<Page<AuditView>> {
        paging.check()?;
        let after = |row: &&AuditRow| paging.after.is_none_or(|cursor: Cursor| row.id > cursor.id);
        let found = self.audit.values().filter(after).filter(|row| filter.lets(row)).cloned();
        Ok(AuditView::page(found.map(AuditView::from).take(paging.size + 1).collect(), paging))
    }

    pub(super) fn once(&mut self, facts: &Facts<'_>, request: &Once) -> Result<Remembered> {
        request.check(facts.limits)?;
        let slot = (request.scope.clone(), request.key.clone());
        let found = self.records.get(&slot).cloned();
        let (answer, row) = rules::once(facts.now, found, request)?;
        self.records.extend(row.map(|row| (slot, row)));
        Ok(answer)
    }

    pub(super) fn admit(&mut self, facts: &Facts<'_>, wanted: &Admission) -> Result<Admitted> {
        wanted.check(facts.limits)?;
        let mut rows = Vec::with_capacity(wanted.requests.len());
        for (at, request) in wanted.requests.iter().enumerate() {
            let slot = (request.scope.clone(), request.key.clone());
            let found = self.records.get(&slot).cloned();
            let (answer, row) = rules::once(facts.now, found, request)?;
            if answer != Remembered::New {
                return Ok(Admitted::Known { at, answer });
            }
            rows.extend(row.map(|row| (slot, row)));
        }
        let jobs = self.enqueue_all(facts, &wanted.jobs)?;
        self.records.extend(rows);
        Ok(Admitted::New(jobs))
    }

    pub(super) fn take(&mut self, facts: &Facts<'_>, wish: &Take) -> Result<Taken> {
        wish.check()?;
        let found = self.tokens.get(&wish.bucket).cloned();
        let (answer, row) = rules::take(facts.now, found, wish);
        self.tokens.extend(row.map(|row| (row.bucket.clone(), row)));
        Ok(answer)
    }

    pub(super) fn prune_records(&mut self, facts: &Facts<'_>, limit: usize, done: &mut Pruned) {
        let (now, keep) = (facts.now, facts.limits.tombstone_ttl);
        let past = |bare: bool| {
            let rows = self.documents.iter().filter(move |(_, row)| row.body.is_none() == bare);
            let ends = rows.filter_map(|(id, row)| Some((row.expires_at?, id)));
            oldest(ends.filter(|(at, _)| *at <= now), limit)
        };
        let (bare, ended) = (past(true), past(false));
        bare.iter().for_each(|id| drop(self.documents.remove(id)));
        done.versions = counted(bare.len());
        for id in &ended {
            if let Some(row) = self.documents.get_mut(id) {
                (row.body, row.expires_at) = (None, Some(now.plus(keep)));
            }
        }
        done.documents = counted(ended.len());

        let ends = self.blobs.iter().filter_map(|(id, blob)| Some((blob.expires_at?, id)));
        let gone = oldest(ends.filter(|(at, _)| *at <= now), limit);
        gone.iter().for_each(|id| drop(self.blobs.remove(id)));
        done.blobs = counted(gone.len());

        let full = self.tokens.iter().map(|(bucket, row)| (row.full_at, bucket));
        let gone = oldest(full.filter(|(at, _)| *at <= now), limit);
        gone.iter().for_each(|bucket| drop(self.tokens.remove(bucket)));
        done.buckets = counted(gone.len());

        let full = self.starts.iter().map(|(place, row)| (row.full_at, place));
        let gone = oldest(full.filter(|(at, _)| *at <= now), limit);
        gone.iter().for_each(|place| drop(self.starts.remove(place)));
        done.starts = counted(gone.len());
    }
}

#[async_trait]
impl Records for MemoryStore {
    async fn put(&self, document: PutDocument) -> Result<Document> {
        self.verb(|state, facts| state.put(facts, &document))
    }

    async fn get(&self, id: RecordId) -> Result<Option<Document>> {
        self.verb(|state, facts| Ok(state.get(facts, &id)))
    }

    async fn delete(&self, document: DeleteDocument) -> Result<bool> {
        self.verb(|state, facts| state.delete(facts, &document))
    }

    async fn list(&self, documents: ListDocuments) -> Result<DocumentPage> {
        self.verb(|state, facts| state.list(facts, &documents))
    }

    async fn put_blob(&self, blob: PutBlob) -> Result<()> {
        self.verb(|state, facts| state.put_blob(facts, &blob))
    }

    async fn get_blob(&self, id: RecordId) -> Result<Option<Vec<u8>>> {
        self.verb(|state, facts| Ok(state.get_blob(facts, &id)))
    }

    async fn delete_blob(&self, id: RecordId) -> Result<bool> {
        self.verb(|state, facts| Ok(state.delete_blob(facts, &id)))
    }

    async fn append(&self, entry: AuditEntry) -> Result<AuditId> {
        self.verb(|state, facts| state.append(facts, &entry))
    }

    async fn audit(&self, filter: AuditFilter, paging: Paging) -> Result<Page<AuditView>> {
        self.verb(|state, _| state.audit(&filter, &paging))
    }

    async fn once(&self, request: Once) -> Result<Remembered> {
        self.verb(|state, facts| state.once(facts, &request))
    }

    async fn admit(&self, admission: Admission) -> Result<Admitted> {
        self.verb(|state, facts| state.admit(facts, &admission))
    }

    async fn take(&self, wish: Take) -> Result<Taken> {
        self.verb(|state, facts| state.take(facts, &wish))
    }
}
