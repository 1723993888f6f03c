//! Owns how requests on records are made of chance: few names, so that they meet each other, and ends
//! that come within a script.

use leasehold_core::lab::RecordStep;
use leasehold_core::{
    Actor, AuditEntry, AuditFilter, BucketName, DeleteDocument, Expected, IdempotencyKey, Json,
    ListDocuments, Namespace, Once, Paging, PutBlob, PutDocument, Rate, RecordId, RequestHash,
    Scope, Take,
};

use super::draw::Draw;

fn id(draw: &mut Draw) -> RecordId {
    let (namespace, key) = (["a", "b"][draw.below(2)], ["x", "xy", "z"][draw.below(3)]);
    RecordId::new(namespace, key).expect("a name")
}

fn json(draw: &mut Draw) -> Json {
    Json::parse(format!("{{\"n\": {}}}", draw.below(3))).expect("JSON")
}

fn expected(draw: &mut Draw) -> Expected {
    match draw.below(4) {
        0 => Expected::Absent,
        1..=2 => Expected::Version(1 + draw.below(4) as i64),
        _ => Expected::Any,
    }
}

fn actor(draw: &mut Draw) -> Actor {
    Actor::new(["ann", "operator"][draw.below(2)]).expect("an actor")
}

/// Draws a request to be answered once: in one step, or begun first.
pub(super) fn once(draw: &mut Draw) -> Once {
    let key = IdempotencyKey::new(["a", "b"][draw.below(2)]).expect("a key");
    let hash = RequestHash::of_job("once", "once", &json(draw));
    let once = match draw.below(3) {
        0 => Once::begin(Scope::global(), key, hash),
        _ => Once::new(Scope::global(), key, hash, json(draw)),
    };
    once.ttl(draw.seconds(30))
}

/// Draws a request on records.
pub(super) fn step(draw: &mut Draw) -> RecordStep {
    match draw.below(12) {
        0..=2 => {
            let put = PutDocument::new(id(draw), json(draw)).expected(expected(draw));
            RecordStep::Put(if draw.once_in(2) { put } else { put.ttl(draw.seconds(20)) })
        }
        3 => RecordStep::Get(id(draw)),
        4 => RecordStep::Delete(DeleteDocument::new(id(draw)).expected(expected(draw))),
        5 => {
            let namespace = Namespace::new("a").expect("a namespace");
            let list = ListDocuments::new(namespace).prefix(["", "x"][draw.below(2)]);
            RecordStep::List(list.limit(1 + draw.below(2)))
        }
        6 => {
            let blob = PutBlob::new(id(draw), vec![7; 1 + draw.below(3)]);
            RecordStep::PutBlob(if draw.once_in(2) { blob } else { blob.ttl(draw.seconds(20)) })
        }
        7 => RecordStep::GetBlob(id(draw)),
        8 => RecordStep::DeleteBlob(id(draw)),
        9 => {
            let action = ["open", "close"][draw.below(2)];
            let target = ["door 1", "door 2"][draw.below(2)];
            RecordStep::Append(AuditEntry::new(actor(draw), action, target))
        }
        10 => {
            let filter = match draw.below(4) {
                0 => AuditFilter::new().actor(actor(draw)),
                1 => AuditFilter::new().target("door 1").action("open"),
                2 => AuditFilter::new().action("close"),
                _ => AuditFilter::new(),
            };
            RecordStep::Audit(filter, Paging::first(1 + draw.below(3)))
        }
        _ => {
            let bucket = BucketName::new("mail").expect("a bucket");
            let rate = [Rate::per_second(3), Rate::per_minute(7)][draw.below(2)];
            let burst = 1 + draw.below(3) as u32;
            RecordStep::Take(Take::new(bucket, rate, burst).tokens(1 + draw.below(2) as u32))
        }
    }
}
