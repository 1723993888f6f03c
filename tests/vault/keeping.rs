//! Secrets in a store: kept, moved about by somebody with the database in hand, and their keys
//! replaced.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::vault::{Binding, KeyRing, Places, Vault, VaultError, prune};
use leasehold::{
    Actor, CancellationToken, ClaimRequest, JobId, JobKind, Json, ListDocuments, Maintenance,
    Namespace, NewJob, PruneRequest, PutDocument, QueueName, RecordId, Settlement, Store, StoreExt,
    Verdict, WorkerId,
};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::sealing::{binding, id, ring};
use crate::{Told, stories};

stories![
    a_secret_comes_back_and_its_places_are_readable,
    documents_moved_between_rows_and_tenants_do_not_open,
    an_older_secret_put_back_does_not_open,
    three_rotations_leave_none_under_a_retired_key,
    a_key_in_use_is_not_retired,
    nothing_is_sealed_with_a_key_that_is_retired,
    what_cannot_be_read_is_counted_and_left,
    a_rewrap_leaves_the_end_where_it_was,
    secrets_go_with_their_job,
    secrets_of_unknown_jobs_go_only_when_asked,
    upkeep_removes_the_secrets_of_pruned_jobs,
];

pub(crate) fn vault(store: &Arc<dyn Store>, keys: KeyRing) -> Vault {
    Vault::new(store.clone(), Arc::new(keys))
}

pub(crate) fn numbered(n: u32) -> Binding {
    Binding::new(format!("job-{n:05}"), format!("requester-{}", n % 7), i64::from(n % 3))
}

pub(crate) fn actor() -> Actor {
    Actor::new("test").expect("an actor")
}

pub(crate) async fn opened(vault: &Vault, binding: &Binding) -> Result<Vec<u8>, VaultError> {
    Ok(vault.open(binding).await?.expose_secret().to_vec())
}

fn row(binding: &Binding) -> leasehold::Result<RecordId> {
    RecordId::new("vault.secrets", format!("{}/{}", binding.job_id, binding.field))
}

async fn body(store: &Arc<dyn Store>, binding: &Binding) -> Result<Json, libtest_mimic::Failed> {
    let found = store.records().get(row(binding)?).await?;
    Ok(found.ok_or("the document is gone")?.body)
}

/// Proves: ENC-1
async fn a_secret_comes_back_and_its_places_are_readable(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let places = Places::from([
        ("bucket".to_owned(), "films".to_owned()),
        ("region".to_owned(), "eu-1".to_owned()),
    ]);
    vault.put(&binding(), b"secret key", places.clone()).await?;
    assert_eq!(opened(&vault, &binding()).await?, b"secret key");
    assert_eq!(vault.places(&binding()).await?, places);
    let stored: Value = serde_json::from_str(body(&store, &binding()).await?.as_str())?;
    for member in ["encrypted", "dek_wrapped", "kek_id", "encryption_version"] {
        assert!(!stored[format!("storage_creds_{member}")].is_null(), "{member}");
    }
    assert_eq!(stored["places"]["bucket"], "films");
    assert!(!stored.to_string().contains("secret key"));
    assert!(vault.delete(&binding()).await?);
    assert!(matches!(opened(&vault, &binding()).await, Err(VaultError::Absent)));
    Ok(())
}

/// Proves: ENC-2
async fn documents_moved_between_rows_and_tenants_do_not_open(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let others = [
        Binding::new("job-8", "requester-1", 3),
        Binding::new("job-9", "requester-2", 3),
        binding().field("webhook_secret"),
    ];
    vault.put(&binding(), b"one", Places::new()).await?;
    for other in others {
        vault.put(&other, b"two", Places::new()).await?;
        let stolen = body(&store, &other).await?;
        let kept = body(&store, &binding()).await?;
        // As it is, and with the plain members set to what the row says.
        let mut dressed: Value = serde_json::from_str(stolen.as_str())?;
        let own: Value = serde_json::from_str(kept.as_str())?;
        for member in ["job_id", "requester_id", "field", "credential_version"] {
            dressed[member] = own[member].clone();
        }
        for put in [stolen, Json::of(&dressed)?] {
            store.records().put(PutDocument::new(row(&binding())?, put)).await?;
            let refused = opened(&vault, &binding()).await;
            assert!(matches!(refused, Err(VaultError::Authentication)), "{other:?}");
        }
        store.records().put(PutDocument::new(row(&binding())?, kept)).await?;
        assert_eq!(opened(&vault, &binding()).await?, b"one");
    }
    Ok(())
}

/// Proves: ENC-2
async fn an_older_secret_put_back_does_not_open(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let version = |n| Binding::new("job-7", "requester-1", n);
    vault.put(&version(1), b"old", Places::new()).await?;
    let old = body(&store, &version(1)).await?;
    vault.put(&version(2), b"new", Places::new()).await?;
    assert_eq!(opened(&vault, &version(2)).await?, b"new");
    assert!(matches!(opened(&vault, &version(1)).await, Err(VaultError::Authentication)));
    store.records().put(PutDocument::new(row(&version(2))?, old)).await?;
    assert!(matches!(opened(&vault, &version(2)).await, Err(VaultError::Authentication)));
    Ok(())
}

/// Proves: ENC-3
async fn three_rotations_leave_none_under_a_retired_key(store: Arc<dyn Store>) -> Told {
    let mut current = "a";
    for n in 0..120 {
        let secret = format!("secret {n}");
        vault(&store, ring("a")).put(&numbered(n), secret.as_bytes(), Places::new()).await?;
    }
    for next in ["b", "c", "d"] {
        let both = ring(next).and(id(current), [current.as_bytes()[0]; 32])?;
        let during = vault(&store, both);
        assert_eq!(opened(&during, &numbered(7)).await?, b"secret 7", "readable during the window");
        // Two at once share the work.
        let (one, two) = tokio::join!(during.rewrap(), during.rewrap());
        let (one, two) = (one?, two?);
        assert_eq!(one.rewrapped + two.rewrapped, 120, "{one:?} {two:?}");
        assert_eq!((one.unreadable, two.unreadable), (0, 0));
        during.retire(&id(current), actor()).await?;
        assert_eq!(during.uses(&id(current)).await?, 0);
        let after = vault(&store, ring(next));
        for n in 0..120 {
            assert_eq!(opened(&after, &numbered(n)).await?, format!("secret {n}").as_bytes());
        }
        current = next;
    }
    Ok(())
}

/// Proves: ENC-3
async fn a_key_in_use_is_not_retired(store: Arc<dyn Store>) -> Told {
    for n in 0..3 {
        vault(&store, ring("a")).put(&numbered(n), b"secret", Places::new()).await?;
    }
    let both = vault(&store, ring("b").and(id("a"), [b'a'; 32])?);
    let refused = both.retire(&id("a"), actor()).await;
    assert!(matches!(refused, Err(VaultError::InUse { blobs: 3, .. })), "{refused:?}");
    assert!(both.retire(&id("b"), actor()).await.is_err(), "the key that seals");
    both.rewrap().await?;
    both.retire(&id("a"), actor()).await?;
    let log = leasehold::AuditFilter::new().action("vault.retire");
    let entries = store.records().audit(log, leasehold::Paging::first(9)).await?.items;
    assert_eq!(entries.iter().map(|it| it.target.as_str()).collect::<Vec<_>>(), ["key a"]);
    Ok(())
}

/// A process that still seals with the old key while another retires it.
///
/// Proves: ENC-3
async fn nothing_is_sealed_with_a_key_that_is_retired(store: Arc<dyn Store>) -> Told {
    let late = vault(&store, ring("a"));
    let keeper = vault(&store, ring("b").and(id("a"), [b'a'; 32])?);
    let seals = async {
        let mut kept = Vec::new();
        for n in 0..60 {
            kept.extend(put_late(&late, n).await);
        }
        kept
    };
    let retires = async {
        tokio::task::yield_now().await;
        loop {
            keeper.rewrap().await?;
            match keeper.retire(&id("a"), actor()).await {
                Err(VaultError::InUse { .. }) => {}
                done => return done,
            }
        }
    };
    let (kept, retired) = tokio::join!(seals, retires);
    retired?;
    // Whatever was answered as kept can be read without the old key.
    let after = vault(&store, ring("b"));
    assert_eq!(after.uses(&id("a")).await?, 0);
    for n in kept {
        assert_eq!(opened(&after, &numbered(n)).await?, b"secret");
    }
    let refused = late.put(&numbered(99), b"secret", Places::new()).await;
    assert!(matches!(refused, Err(VaultError::RetiredKey(_))), "{refused:?}");
    assert!(matches!(opened(&after, &numbered(99)).await, Err(VaultError::Absent)));
    Ok(())
}

/// The number of a secret, if it was kept.
async fn put_late(vault: &Vault, n: u32) -> Option<u32> {
    match vault.put(&numbered(n), b"secret", Places::new()).await {
        Ok(()) => Some(n),
        Err(VaultError::RetiredKey(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

/// Proves: ENC-3
async fn what_cannot_be_read_is_counted_and_left(store: Arc<dyn Store>) -> Told {
    for (n, key) in ["a", "x", "a", "a"].into_iter().enumerate() {
        let binding = numbered(u32::try_from(n)?);
        vault(&store, ring(key)).put(&binding, b"secret", Places::new()).await?;
    }
    let odd = PutDocument::new(row(&numbered(8))?, Json::parse("{\"plain\":\"from before\"}")?);
    store.records().put(odd).await?;
    let lie = body(&store, &numbered(2)).await?.as_str().replace("job-00002", "job-00003");
    store.records().put(PutDocument::new(row(&numbered(2))?, Json::parse(lie)?)).await?;
    let before = everything(&store).await?;
    let both = vault(&store, ring("b").and(id("a"), [b'a'; 32])?);
    let done = both.rewrap().await?;
    assert_eq!((done.rewrapped, done.current, done.unreadable), (2, 0, 3));
    let after = everything(&store).await?;
    for n in [1, 2, 8] {
        let at = row(&numbered(n))?.key;
        let same =
            |all: &[(String, String)]| all.iter().find(|(key, _)| key == at.as_str()).cloned();
        assert_eq!(same(&before), same(&after), "{n} stays as it was");
    }
    let again = both.rewrap().await?;
    assert_eq!((again.rewrapped, again.current, again.unreadable), (0, 2, 3));
    Ok(())
}

async fn everything(store: &Arc<dyn Store>) -> leasehold::Result<Vec<(String, String)>> {
    let list = ListDocuments::new(Namespace::new("vault.secrets")?).limit(1_000);
    let page = store.records().list(list).await?;
    let pairs =
        page.items.into_iter().map(|it| (it.id.key.to_string(), it.body.as_str().to_owned()));
    Ok(pairs.collect())
}

/// Proves: ENC-3
async fn a_rewrap_leaves_the_end_where_it_was(store: Arc<dyn Store>) -> Told {
    let hour = Some(Duration::from_secs(3600));
    vault(&store, ring("a")).put_for(&binding(), b"secret", Places::new(), hour).await?;
    let before = store.records().get(row(&binding())?).await?.ok_or("gone")?.expires_at;
    vault(&store, ring("b").and(id("a"), [b'a'; 32])?).rewrap().await?;
    let after = store.records().get(row(&binding())?).await?.ok_or("gone")?.expires_at;
    let (before, after) = (before.ok_or("no end")?, after.ok_or("no end")?);
    let moved = if after > before { after.since(before) } else { before.since(after) };
    assert!(moved < Duration::from_secs(30), "{moved:?}");
    Ok(())
}

/// A job that has succeeded, and one that waits; each with two secrets.
pub(crate) async fn two_jobs(
    store: &Arc<dyn Store>,
    vault: &Vault,
) -> Result<(Binding, Binding), libtest_mimic::Failed> {
    let mut bindings = Vec::new();
    for payload in ["1", "2"] {
        let job = NewJob::new(JobKind::new("k")?, Json::parse(payload)?);
        let binding = Binding::new(store.enqueue_one(job).await?.job().to_string(), "acme", 1);
        for field in ["storage_creds", "a/b"] {
            vault.put(&binding.clone().field(field), b"secret", Places::new()).await?;
        }
        bindings.push(binding.field("a/b"));
        if payload == "1" {
            let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
            let claim = store.claim(request).await?.remove(0);
            store
                .settle_one(Settlement::new(claim.fence, Verdict::Succeed { result: None }))
                .await?;
        }
    }
    let waiting = bindings.pop().ok_or("two")?;
    Ok((bindings.pop().ok_or("two")?, waiting))
}

pub(crate) async fn prune_jobs(store: &Arc<dyn Store>) -> Told {
    assert_eq!(store.prune(PruneRequest::new().older_than(Duration::ZERO)).await?.jobs, 1);
    Ok(())
}

/// Proves: ENC-3, QUE-4
async fn secrets_go_with_their_job(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let (done, waiting) = two_jobs(&store, &vault).await?;
    vault.put(&binding(), b"of no job", Places::new()).await?;
    assert_eq!(
        prune(&*store, None).await?,
        0,
        "the job is there, and may be looked at and replayed"
    );
    prune_jobs(&store).await?;
    assert_eq!(prune(&*store, None).await?, 2, "both of its secrets, and no other");
    assert!(matches!(opened(&vault, &done).await, Err(VaultError::Absent)));
    assert_eq!(opened(&vault, &waiting).await?, b"secret");
    assert_eq!(opened(&vault, &binding()).await?, b"of no job");
    assert_eq!(prune(&*store, None).await?, 0);
    Ok(())
}

/// Proves: ENC-3, QUE-4
async fn secrets_of_unknown_jobs_go_only_when_asked(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let (_done, waiting) = two_jobs(&store, &vault).await?;
    let to_come = Binding::new(JobId::new().to_string(), "acme", 1);
    vault.put(&to_come, b"early", Places::new()).await?;
    vault.put(&binding(), b"of no job", Places::new()).await?;
    assert_eq!(prune(&*store, None).await?, 0, "its job may come yet");
    assert_eq!(prune(&*store, Some(Duration::from_secs(3_600))).await?, 0, "it is young");
    assert_eq!(prune(&*store, Some(Duration::ZERO)).await?, 1);
    assert!(matches!(opened(&vault, &to_come).await, Err(VaultError::Absent)));
    assert_eq!(opened(&vault, &waiting).await?, b"secret");
    assert_eq!(opened(&vault, &binding()).await?, b"of no job");
    Ok(())
}

/// Proves: ENC-3, QUE-4
async fn upkeep_removes_the_secrets_of_pruned_jobs(store: Arc<dyn Store>) -> Told {
    let vault = vault(&store, ring("a"));
    let (done, waiting) = two_jobs(&store, &vault).await?;
    prune_jobs(&store).await?;
    let stop = CancellationToken::new();
    let upkeep = Maintenance::new(store.clone()).every(Duration::from_millis(20));
    let story = async {
        let _ends_the_upkeep = stop.clone().drop_guard();
        let begun = Instant::now();
        while !matches!(opened(&vault, &done).await, Err(VaultError::Absent)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody removes it");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(upkeep.run(&stop), story);
    assert_eq!(opened(&vault, &waiting).await?, b"secret");
    Ok(())
}
